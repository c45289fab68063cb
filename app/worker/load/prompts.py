"""Prompts of a wanted length: random common words, so that each is unique from its first words on and no cache has seen it.

How many tokens a word makes is the server's matter: two probes with different numbers of words give tokens = overhead + per_word · words,
and each request's own count comes from usage afterwards.
"""

from dataclasses import dataclass

import numpy as np

_WORDS = b"""
able about above across act action add after again age air all allow alone along always among amount and animal answer any appear
area arm around arrive art ask away baby back bad ball bank base bear beat beauty bed before begin behind believe best better
between big bird bit black blood blow blue board boat body bone book born both bottom box boy branch bread break bridge bright bring
brother brown build burn business busy but buy call came can capital car card care carry case cat catch cause cell center century
certain chair chance change character charge chart check chief child choose church circle city claim class clean clear climb clock
close cloth cloud coast coat cold collect color column come common company compare complete condition consider contain continue
control cook cool copy corn corner correct cost cotton could count country course cover cow create crop cross crowd cry current cut
dance danger dark day dead deal dear death decide deep degree depend describe desert design develop did differ difference dinner
direct discuss distance divide doctor dog dollar done door double down draw dream dress drink drive drop dry during each ear early
earth ease east eat edge effect egg eight either electric element else end enemy energy engine enough enter equal especially even
evening event ever every exact example except excite exercise expect experience experiment eye face fact fair fall family famous far
farm fast father favor fear feed feel feet fell felt few field fight figure fill final find fine finger finish fire first fish fit
five flat floor flow flower fly follow food foot force forest form forward found four fraction free fresh friend from front fruit
full fun game garden gas gather gave general gentle get girl give glad glass gold gone good govern grand grass gray great green grew
ground group grow guess guide gun had hair half hand happen happy hard hat have head hear heart heat heavy held help here high hill
history hit hold hole home hope horse hot hour house how huge human hundred hunt hurry ice idea imagine inch include indicate
industry insect instant instrument interest invent iron island job join joy jump just keep kept key kill kind king knew know lady
lake land language large last late laugh law lay lead learn least leave led left leg length less let letter level lie life lift
light like line liquid list listen little live locate log long look lost lot loud love low machine made magnet main major make man
many map mark market mass master match material matter may mean meant measure meat meet melody men metal method middle might mile
milk million mind mine minute miss mix modern molecule moment money month moon more morning most mother motion mount mountain mouth
move much multiply music must name nation natural nature near necessary neck need neighbor never new next night nine noise noon nor
north nose note nothing notice noun now number numeral object observe occur ocean off offer office often oil old once one only open
operate opposite order organ original other our out over own oxygen page paint pair paper paragraph parent part particular party
pass past path pattern pay people perhaps period person phrase pick picture piece pitch place plain plan plane planet plant play
please plural poem point poor populate port pose position possible post pound power practice prepare present press pretty print
probable problem process produce product proper property protect prove provide pull push put quart question quick quiet quite race
radio rail rain raise ran range rather reach read ready real reason receive record red region remember repeat reply represent
require rest result rich ride right ring rise river road rock roll room root rope rose round row rub rule run safe sail salt same
sand sat save say scale school science score sea search season seat second section see seed seem segment select self sell send sense
sent sentence separate serve set settle seven several shall shape share sharp sheet shell shine ship shoe shop shore short should
shoulder shout show side sight sign silent silver similar simple since sing single sister sit six size skill skin sky sleep slip
slow small smell smile snow soft soil soldier solution solve some son song soon sound south space speak special speech speed spell
spend spoke spot spread spring square stand star start state station stay stead steam steel step stick still stone stood stop store
story straight strange stream street stretch string strong student study subject substance success such sudden sugar suggest suit
summer sun supply support sure surface surprise swim symbol system table tail take talk tall teach team teeth tell temperature ten
term test than thank that the their them then there these they thick thin thing think third this those though thought thousand three
through throw thus tie time tiny tire together told tone took tool top total touch toward town track trade train travel tree
triangle trip trouble truck true try tube turn twenty two type under unit until usual valley value vary verb very view village visit
voice vowel wait walk wall want war warm was wash watch water wave way wear weather week weight well went west what wheel when where
which while white whole whose why wide wife wild will win wind window wing winter wire wish with woman wonder wood word work world
would write written wrong yard year yellow yes yet you young your
""".split()


@dataclass(frozen=True)
class TokensPerWord:
    """Tokens of a prompt as overhead + per_word · words; a guess of one token a word until the server has counted."""

    overhead: float = 0.0
    per_word: float = 1.0

    def words(self, tokens: int) -> int:
        """Words whose prompt has about so many tokens, at least one."""
        return max(round((tokens - self.overhead) / self.per_word), 1)


def tokens_per_word(few: tuple[int, int], many: tuple[int, int]) -> TokensPerWord | None:
    """From two probes as (words, tokens). None where more words did not make more tokens: then nothing is known."""
    if many[0] <= few[0] or many[1] <= few[1]:
        return None
    per_word = (many[1] - few[1]) / (many[0] - few[0])
    return TokensPerWord(few[1] - per_word * few[0], per_word)


class Prompts:
    """Unique prompts in a reproducible order. Another `stream` or `share` of the same seed shares no prompt with this one."""

    def __init__(self, seed: int, stream: int, share: int = 0) -> None:
        self._random = np.random.default_rng((seed, stream, share))

    def next(self, words: int) -> bytes:
        """A prompt of so many words, in letters and spaces only."""
        chosen = self._random.integers(0, len(_WORDS), words).tolist()
        return b" ".join([_WORDS[index] for index in chosen])
