"""What every table has in common: names of constraints by one convention, so that a migration can name them on both databases."""

from sqlalchemy import BigInteger, Integer, MetaData
from sqlalchemy.orm import registry
from sqlmodel import SQLModel

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s_%(referred_table_name)s",
        "pk": "pk_%(table_name)s",
    }
)

# SQLite numbers rows by itself only in a column of its own INTEGER type, which is 64 bits wide there.
ROW_ID = BigInteger().with_variant(Integer(), "sqlite")


class Table(SQLModel, registry=registry(metadata=metadata)):
    """The base of every table, with a registry of its own."""
