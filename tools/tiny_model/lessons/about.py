"""Small talk: greetings, what lmwire is, and admitting what the model does not know."""

from typing import Final

from . import phrases
from .example import Example, asked, assistant, user
from .source import Source
from .words import CITIES, NAMES, SUBJECTS, THINGS

GREETING: Final = "Hello! I am the tiny model that ships with lmwire. Ask me what lmwire is, or what I can do."
UNKNOWN: Final = "I do not know that. I am a tiny model that ships with lmwire; ask me what I can do."

TALK: Final[tuple[tuple[str, tuple[str, ...]], ...]] = (
    (
        GREETING,
        (
            "Hello!", "Hi!", "Hey!", "Good morning!", "Hey there!", "Hi there!", "Good evening!", "Greetings!",
            "Hello there!", "Hello, lmwire!", "Hello, model!", "Hi, lmwire!", "Good afternoon!", "Good day!",
            "Hey, lmwire!", "Say hello.", "Hello, hello!", "Howdy!", "Hello again!", "Hi again!",
        ),
    ),
    (
        "I am the tiny model that ships with lmwire. I show that everything works; I know little else.",
        (
            "Who are you?", "What are you?", "Which model are you?", "What is your name?", "Tell me who you are.",
            "What model is this?", "Who am I talking to?", "Are you a model?", "Introduce yourself.",
            "Please introduce yourself.", "Tell me about yourself.", "So who are you?", "What kind of model are you?",
            "And you are?", "Hello, who are you?", "Who is this?", "Hi! Who are you?", "What should I call you?",
            "Do you have a name?", "Hey, what are you?",
        ),
    ),
    (
        "lmwire runs an MLX language model as a child process: your program writes commands to its stdin and reads "
        "events from its stdout, one JSON object a line.",
        (
            "What is lmwire?", "Tell me about lmwire.", "Explain lmwire.", "What does lmwire do?", "What's lmwire?",
            "What is lmwire for?", "Describe lmwire.", "How does lmwire work?", "Can you explain what lmwire is?",
            "Please tell me what lmwire is.", "Say what lmwire is.", "Hello! What is lmwire?", "Hi, what is lmwire?",
            "I have never heard of lmwire. What is it?", "Explain to me what lmwire does.", "What can lmwire do?",
            "Describe lmwire in a sentence.", "Why would I use lmwire?", "Give me a summary of lmwire.",
            "Please describe lmwire.",
        ),
    ),
    (
        "I can tell what lmwire is and explain its commands, events and error codes, add, subtract and compare small "
        "numbers, call tools, answer as JSON, repeat, count, and say a few words in other languages.",
        (
            "What can you do?", "What can I ask you?", "Help", "How can you help me?", "What do you know?",
            "What are you able to do?", "What are you good at?", "Help me.", "What are your abilities?",
            "Tell me what you can do.", "List what you can do.", "Give me some ideas what to ask.",
            "What can I do here?",
            "What should I ask you?", "What else can you do?", "What are your skills?", "Show me what you can do.",
            "How can I use you?", "What do you do?", "Can you help me?",
        ),
    ),
    (
        "I am running well, thank you. What can I do for you?",
        (
            "How are you?", "How are you doing?", "How do you do?", "Are you well?", "How is it going?",
            "Hello, how are you?", "Hi, how are you?", "How are things?", "How do you feel?", "Hey, how are you?",
        ),
    ),
    (
        "You are welcome!",
        (
            "Thanks!", "Thank you!", "Thank you very much!", "Many thanks.", "Thanks a lot!", "Great, thank you!",
            "Thanks for your help.", "Perfect, thanks.", "Thank you so much!", "Good, thanks!",
        ),
    ),
    (
        "Goodbye!",
        ("Bye!", "Goodbye!", "See you!", "See you later!", "Good night!", "Bye bye!", "Farewell!", "I have to go.",
         "Goodbye, model!", "See you soon!"),
    ),
    (
        "MLX is an array library for machine learning on Apple silicon. It also runs on Linux, on CPUs and with CUDA.",
        ("What is MLX?", "Tell me about MLX.", "Explain MLX.", "What does MLX do?", "Describe MLX.", "What's MLX?",
         "What is MLX for?", "Do you know MLX?", "Please explain MLX.", "Say what MLX is."),
    ),
    (
        "Send load with the path of a folder or a hub id, or start lmwire chat with its name: lmwire chat MODEL.",
        ("How do I load another model?", "How can I use a different model?", "How do I load a bigger model?",
         "Can I use another model?", "I want another model.", "How do I change the model?", "Load a better model.",
         "How do I get a larger model?", "How can I load a different model?", "How do I switch to another model?"),
    ),
)  # fmt: skip
"""Answers, each with its questions."""

_UNKNOWN_NOUNS: Final = (
    "the {subject} of {city}", "the history of {city}", "the capital of {made_up}", "the {subject} in {year}",
    "the best {thing} in {city}", "the {subject}", "who invented the {thing}", "who {name} {made_up} is",
    "a joke about a {thing}", "a story about {name}", "why the {thing} is so famous", "where {made_up} is",
    "how far it is to {city}", "how old {name} is", "the meaning of {made_up}",
)  # fmt: skip
_UNKNOWN_VERBS: Final = (
    "write a poem about a {thing}", "write an essay on the {subject}", "tell a story about {name}",
    "plan a trip to {city}",
    "recommend a {thing}", "sing a song about {city}", "write code that sorts a {thing}", "draw a {thing}",
    "drive to {city}", "explain the history of {city}",
)  # fmt: skip
_UNKNOWN_FRAMES: Final = (
    "Who invented the {thing}?", "Why is the {thing} so famous?", "Who is {name} {made_up}?", "What is a {made_up}?",
    "When was {city} founded?", "How do I cook a {thing}?", "Where is {made_up}?", "What happened in {year}?",
    "Tell me about {made_up}.", "Who won the cup in {year}?", "Do you like {city}?", "How far is it to {city}?",
    "What does {made_up} mean?", "Who was {name}?", "Where is {city}?", "How old is {name}?", "What is {made_up}?",
    "Why is {made_up} famous?", "Explain {made_up}.", "When did {name} live?",
)  # fmt: skip

_NAME_FRAMES: Final = (
    "My name is {name}.", "I am {name}.", "Call me {name}.", "You can call me {name}.", "I am called {name}.",
    "I'm {name}.", "My name's {name}.", "Please call me {name}.", "This is {name}.", "They call me {name}.",
    "{name} is my name.", "You may call me {name}.", "I go by {name}.", "People call me {name}.",
    "You should call me {name}.",
)  # fmt: skip
_NAME_QUESTIONS: Final = (
    "What is my name?", "Do you remember my name?", "Who am I?", "What am I called?", "Say my name.",
    "Tell me my name.", "What was my name?", "Can you tell me my name?", "Do you know my name?", "And my name?",
    "What name did I give you?", "How am I called?", "Have you forgotten my name?", "Repeat my name.",
    "Which name is mine?", "Do you know who I am?", "What is my name again?", "Please say my name.",
    "Remind me of my name.", "Do you still know my name?", "Can you say my name?", "Could you tell me who I am?",
    "What do people call me?", "What name do I have?", "What did I say my name was?",
)  # fmt: skip


def greeting(source: Source) -> Example:
    """Ask about the model and lmwire, or greet it."""
    answer, questions = source.any(TALK[:4]) if source.chance(0.6) else source.any(TALK)
    return asked("greeting and lmwire", phrases.spoken(source, source.one(questions)), answer)


def unknown(source: Source) -> Example:
    """Ask what the model cannot answer."""
    kind = source.between(0, 3)
    if kind == 0:
        frame = phrases.told(source, source.any(_UNKNOWN_NOUNS))
    elif kind == 1:
        frame = phrases.done(source, source.any(_UNKNOWN_VERBS))
    elif kind == 2:
        frame = source.one(_UNKNOWN_FRAMES)
    else:
        frame = (
            source.foreign() if source.chance(0.5) else " ".join(source.invented() for _ in range(source.between(1, 4)))
        )
    question = frame.format(
        subject=source.one(SUBJECTS),
        city=source.one(CITIES),
        thing=source.one(THINGS),
        name=source.one(NAMES),
        made_up=source.invented().capitalize(),
        year=source.between(1000, 2100),
    )
    return asked("admitting what it does not know", phrases.spoken(source, question), UNKNOWN)


def name(source: Source) -> Example:
    """Introduce the user, and ask for the name again."""
    called = source.identifier(NAMES).capitalize()
    told = user(phrases.opened(source, source.one(_NAME_FRAMES).format(name=called)))
    met = f"Nice to meet you, {called}!"
    if source.chance(0.3):
        return Example("remembering a name", [told], met)
    between = []
    if source.chance(0.5):
        answer, questions = source.any(TALK[:7])
        between = [user(source.one(questions)), assistant(answer)]
    question = user(phrases.spoken(source, source.one(_NAME_QUESTIONS)))
    return Example("remembering a name", [told, assistant(met), *between, question], f"Your name is {called}.")
