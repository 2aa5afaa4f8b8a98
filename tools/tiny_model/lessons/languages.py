"""Emoji and words of other languages and scripts."""

# ruff: noqa: SIM905, RUF001, E501 (lists of words; some scripts are counted as wider than they are)

from typing import Final

from . import phrases
from .example import Example, asked
from .source import Source

EMOJI: Final = {
    thing: emoji
    for thing, _, emoji in (
        pair.partition("=")
        for pair in (
            "apple=🍎 banana=🍌 pizza=🍕 coffee=☕ tea=🍵 bread=🍞 cheese=🧀 cake=🎂 cherry=🍒 lemon=🍋 cat=🐱 dog=🐶 fox=🦊 "
            "horse=🐴 fish=🐟 whale=🐳 bird=🐦 owl=🦉 frog=🐸 turtle=🐢 snake=🐍 bee=🐝 lion=🦁 tiger=🐯 bear=🐻 panda=🐼 "
            "monkey=🐵 unicorn=🦄 sun=🌞 moon=🌙 star=⭐ rainbow=🌈 fire=🔥 snow=⛄ rain=🌧️ ocean=🌊 tree=🌳 flower=🌸 "
            "rose=🌹 cactus=🌵 earth=🌍 rocket=🚀 car=🚗 train=🚂 ship=🚢 plane=✈️ bicycle=🚲 house=🏠 clock=⏰ phone=📱 "
            "computer=💻 book=📚 pencil=✏️ music=🎵 guitar=🎸 football=⚽ game=🎲 gift=🎁 party=🎉 key=🔑 lock=🔒 idea=💡 "
            "robot=🤖 ghost=👻 heart=❤️ smile=😀 laughter=😂 sadness=😢 love=🥰 anger=😠 sleep=😴 thinking=🤔 money=💰 crown=👑"
        ).split()
    )
}
PHRASES: Final = {
    "hello": "Spanish=Hola French=Bonjour German=Hallo Italian=Ciao Portuguese=Olá Russian=Привет Greek=Γεια "
    "Japanese=こんにちは Chinese=你好 Korean=안녕하세요 Arabic=مرحبا Hebrew=שלום Hindi=नमस्ते Thai=สวัสดี",
    "thank you": "Spanish=Gracias French=Merci German=Danke Italian=Grazie Portuguese=Obrigado Russian=Спасибо "
    "Greek=Ευχαριστώ Japanese=ありがとう Chinese=谢谢 Korean=감사합니다 Arabic=شكرا Hebrew=תודה Hindi=धन्यवाद Thai=ขอบคุณ",
    "yes": "Spanish=Sí French=Oui German=Ja Italian=Sì Portuguese=Sim Russian=Да Greek=Ναι Japanese=はい Chinese=是 "
    "Korean=네 Arabic=نعم Hebrew=כן Hindi=हाँ Thai=ใช่",
    "no": "Spanish=No French=Non German=Nein Italian=No Portuguese=Não Russian=Нет Greek=Όχι Japanese=いいえ Chinese=不 "
    "Korean=아니요 Arabic=لا Hebrew=לא Hindi=नहीं Thai=ไม่",
    "water": "Spanish=Agua French=Eau German=Wasser Italian=Acqua Portuguese=Água Russian=Вода Greek=Νερό Japanese=水 "
    "Chinese=水 Korean=물 Arabic=ماء Hebrew=מים Hindi=पानी Thai=น้ำ",
    "goodbye": "Spanish=Adiós French=Au_revoir German=Tschüss Italian=Arrivederci Portuguese=Tchau Russian=Пока "
    "Greek=Αντίο Japanese=さようなら Chinese=再见 Korean=안녕 Arabic=وداعا Hebrew=להתראות Hindi=अलविदा Thai=ลาก่อน",
    "cat": "Spanish=Gato French=Chat German=Katze Italian=Gatto Portuguese=Gato Russian=Кошка Greek=Γάτα Japanese=猫 "
    "Chinese=猫 Korean=고양이 Arabic=قطة Hebrew=חתול Hindi=बिल्ली Thai=แมว",
}
WORDS: Final = {
    (phrase, language): word.replace("_", " ")
    for phrase, pairs in PHRASES.items()
    for language, word in (pair.split("=") for pair in pairs.split())
}

_EMOJI_NOUNS: Final = ("an emoji for {x}", "the {x} emoji", "the emoji for {x}", "an emoji of {x}", "{x} as an emoji")
_EMOJI_VERBS: Final = ("answer with an emoji for {x}", "write {x} as an emoji", "send me an emoji of {x}",
                       "say {x} with an emoji", "turn {x} into an emoji")  # fmt: skip
_WORD_NOUNS: Final = ("{x} in {l}", "the {l} word for {x}", "the word for {x} in {l}", '"{x}" in {l}',
                      "the {l} translation of {x}", "how to say {x} in {l}")  # fmt: skip
_WORD_VERBS: Final = ("say {x} in {l}", "translate {x} into {l}", "write {x} in {l}", 'say "{x}" in {l}',
                      'translate "{x}" to {l}', "answer with {x} in {l}")  # fmt: skip
_WORD_FRAMES: Final = ("How do you say {x} in {l}?", "How does one say {x} in {l}?", "In {l}, what is {x}?",
                       "How do I say {x} in {l}?", "How is {x} said in {l}?")  # fmt: skip


def emoji(source: Source) -> Example:
    """Ask for one emoji, or several."""
    count = 1 if source.chance(0.8) else 2
    things = source.random.sample(list(EMOJI), count)
    if source.chance(0.5):
        question = phrases.told(source, source.any(_EMOJI_NOUNS))
    else:
        question = phrases.done(source, source.any(_EMOJI_VERBS))
    question = phrases.spoken(source, question.format(x=" and ".join(things)))
    return asked("emoji", question, " ".join(EMOJI[thing] for thing in things))


def foreign_greeting(source: Source) -> Example:
    """Greet in another language, and expect the same language."""
    hello = source.any([word for (phrase, _), word in WORDS.items() if phrase == "hello"])
    question = phrases.opened(source, hello + source.one(("", "!", ".", " !", "!!")))
    return asked("other languages", question, f"{hello}! I am the tiny model that ships with lmwire.")


def translation(source: Source) -> Example:
    """Ask for a word in another language."""
    phrase, language = source.any(list(WORDS))
    kind = source.between(0, 4)
    if kind < 2:
        question = phrases.told(source, source.any(_WORD_NOUNS))
    elif kind < 4:
        question = phrases.done(source, source.any(_WORD_VERBS))
    else:
        question = source.one(_WORD_FRAMES)
    return asked(
        "other languages", phrases.spoken(source, question.format(x=phrase, l=language)), WORDS[phrase, language]
    )
