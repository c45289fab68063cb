"""The store: one database, SQLite or PostgreSQL, that holds runs, the files they came from, their samples and the profiles.

`database` opens it and owns the transaction rules, `migrate` brings it to this version's schema, `tables` says what is kept;
`uploads`, `runs`, `run_list`, `requests` and `profiles` read and write one aggregate each, domain objects in and domain objects out.
"""
