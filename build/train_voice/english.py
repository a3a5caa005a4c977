"""What the voice learns to say in English, written as the text front end writes it.

Lower case; numbers in words, tens and ones joined by a hyphen; apostrophes kept; no end mark, the
corpus adds one.
"""

from __future__ import annotations

import random

from train_voice.grammar import Grammar

_ONES = (
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"),
    *("eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen"),
    "nineteen",
)
_TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_ORDINALS = (
    *("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth"),
    *("tenth", "eleventh", "twelfth", "thirteenth", "fourteenth", "fifteenth", "sixteenth"),
    *("seventeenth", "eighteenth", "nineteenth", "twentieth"),
)


def number(value: int) -> str:
    """Return the words of a number in 0 ... 9999."""
    if value < len(_ONES):
        return _ONES[value]
    if value < 100:
        tens, ones = divmod(value, 10)
        return _TENS[tens - 2] + (f"-{_ONES[ones]}" if ones else "")
    unit, name = (1000, "thousand") if value >= 1000 else (100, "hundred")
    most, rest = divmod(value, unit)
    return f"{_ONES[most]} {name}" + (f" {number(rest)}" if rest else "")


def ordinal(value: int) -> str:
    """Return the words of an ordinal number in 1 ... 31."""
    if value <= len(_ORDINALS):
        return _ORDINALS[value - 1]
    tens, ones = divmod(value, 10)
    return f"{_TENS[tens - 2]}-{_ORDINALS[ones - 1]}" if ones else "thirtieth"


def _number_to_99(rng: random.Random) -> str:
    # teens and tens are what listeners confuse: they come more often than others
    if rng.random() < 0.4:
        return number(rng.choice([*range(13, 20), *range(20, 100, 10)]))
    return number(rng.randrange(2, 100))


def _large_number(rng: random.Random) -> str:
    return number(rng.choice([rng.randrange(100, 1000), 100 * rng.randrange(1, 100)]))


def _digits(rng: random.Random) -> str:
    return " ".join(rng.choice(_ONES[:10]) for _ in range(rng.randrange(3, 6)))


def _clock(rng: random.Random) -> str:
    hour, minute = rng.choice(_ONES[1:13]), rng.randrange(10, 60)
    forms = (
        *(f"{hour} o'clock", f"half past {hour}", f"a quarter past {hour}"),
        *(f"a quarter to {hour}", f"{hour} {number(minute)}", f"{hour} {number(minute)}"),
        *(f"{number(rng.randrange(5, 30, 5))} past {hour}", f"{hour} in the evening"),
    )
    return rng.choice(forms)


def _date(rng: random.Random) -> str:
    month, day = rng.choice(SLOTS["month"]), ordinal(rng.randrange(1, 32))
    year = f", twenty {number(rng.randrange(10, 40))}" if rng.random() < 0.2 else ""
    return rng.choice((f"{month} {day}{year}", f"the {day} of {month}", f"{month} the {day}"))


def _price(rng: random.Random) -> str:
    dollars = _number_to_99(rng)
    cents = f" and {number(rng.randrange(5, 100, 5))} cents" if rng.random() < 0.4 else ""
    return f"{dollars} dollars{cents}"


SLOTS = {
    "name": ("anna", "john", "sarah", "peter", "mary", "david", "emma", "kevin", "lucy"),
    "city": ("london", "paris", "tokyo", "berlin", "boston", "chicago", "shanghai", "beijing",
             "rome", "madrid"),
    "day": ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"),
    "month": ("january", "february", "march", "april", "may", "june", "july", "august",
              "september", "october", "november", "december"),
    "when": ("today", "tomorrow", "tonight", "this morning", "this afternoon", "this evening",
             "on {day}", "next {day}", "next week", "at {clock}"),
    "daytime": ("morning", "afternoon", "evening"),
    "weather": ("sunny", "rainy", "cloudy", "windy", "snowy", "foggy", "cold", "warm", "hot",
                "dry", "wet", "cool"),
    "place": ("station", "hotel", "bank", "museum", "hospital", "school", "library", "park",
              "airport", "restaurant", "market", "bridge", "church", "office"),
    "side": ("left", "right"),
    "road": ("street", "corner", "bridge", "traffic light", "crossing"),
    "vehicle": ("train", "bus", "plane", "taxi", "ship"),
    "color": ("red", "blue", "green", "yellow", "black", "white", "brown", "orange"),
    "thing": ("car", "house", "book", "key", "phone", "bag", "door", "window", "table", "chair",
              "picture", "letter", "ticket", "coat"),
    "food": ("coffee", "tea", "milk", "water", "bread", "apple", "sandwich", "soup", "fish",
             "cheese", "cake", "juice"),
    "animal": ("dog", "cat", "bird", "horse"),
    "machine": ("server", "network", "computer", "printer", "database", "battery", "camera",
                "microphone", "screen", "model", "system", "service"),
    "state": ("ready", "running", "working", "offline", "online", "busy", "full", "open",
              "closed", "slow"),
    "failure": ("has failed", "has stopped", "does not answer", "is out of memory",
                "needs an update", "was restarted", "cannot be found", "lost its connection"),
    "file": ("message", "email", "file", "request", "report", "test", "download", "order"),
    "quality": ("{plain}", "{plain}", "{plain}", "old"),
    "a_quality": ("a {plain}", "a {plain}", "a {plain}", "an old"),
    "plain": ("big", "small", "new", "good", "fast", "long", "short", "quiet", "heavy"),
    "meal": ("breakfast", "lunch", "dinner"),
    "person": ("my mother", "my father", "my brother", "my sister", "my friend", "the doctor",
               "the teacher", "{name}"),
    "unit": ("meters", "miles", "minutes", "kilometers", "steps"),
    "verb": ("eat", "drink", "buy", "cook", "write", "wait", "sleep", "learn", "speak", "listen",
             "walk", "play", "work", "sing", "dance", "travel"),
    "language": ("english", "chinese", "french", "german", "music"),
}  # fmt: skip

TEMPLATES = (
    # greetings
    "hello {name}, how are you {when}",
    "good {daytime}, {name}",
    "good {daytime}, my name is {name}",
    "welcome to {city}, {name}",
    "nice to meet you, {name}",
    "goodbye {name}, see you {when}",
    "good night, {name}",
    "hi {name}, it's good to see you",
    "thank you very much, {name}",
    "please say hello to {person}",
    # numbers
    "the number is {n99}",
    "the code is {digits}",
    "my phone number is {digits} {digits}",
    "please call {digits} {digits}",
    "{n99} plus {n99} is {n99}",
    "{n99} minus {n99} is {n99}",
    "you are number {n99} in line",
    "there are {n999} people in the {place}",
    "he has {n99} books and {n99} pictures",
    "the room number is {n999}",
    # dates and times
    "today is {day}, {date}",
    "the date is {date}",
    "her birthday is on {date}",
    "it is {clock}",
    "it's {clock} in {city}",
    "we will meet at {clock} on {day}",
    "the meeting starts at {clock}",
    "the meeting on {day} is at {clock}",
    "the {place} opens at {clock}",
    "the shop closes at {clock} on {day}",
    "please wake me at {clock}",
    "see you on {day}, {date}",
    # weather
    "the weather in {city} is {weather}",
    "it will be {weather} and {weather} {when}",
    "tomorrow will be {weather} with a high of {n99} degrees",
    "the temperature in {city} is {n99} degrees",
    "it is minus {n99} degrees in {city}",
    "there will be rain and snow in {city} {when}",
    "the sky is {color} and the wind is {weather}",
    "take a coat, it's {weather} outside",
    # directions and transport
    "turn {side} at the next {road}",
    "turn {side} and walk {n99} {unit}",
    "go straight for {n999} {unit}",
    "the {place} is next to the {place}",
    "the {place} is on the {side}, behind the {place}",
    "where is the {place}",
    "how do i get to the {place}",
    "the {vehicle} to {city} leaves at {clock}",
    "the {vehicle} from {city} arrives at {clock}",
    "please take {vehicle} number {n99}",
    "the {vehicle} is {n99} minutes late",
    "one ticket to {city}, please",
    "cross the {road} and turn {side}",
    # status and errors
    "the {machine} is {state}",
    "the {machine} is not {state}",
    "the {machine} {failure}",
    "warning, the {machine} {failure}",
    "error {n99}, the {machine} {failure}",
    "the battery is at {n99} percent",
    "the {file} is {n99} percent complete",
    "your {file} was sent at {clock}",
    "the {file} took {n99} seconds",
    "you have {n99} new messages",
    "please restart the {machine} {when}",
    "the password is wrong, please try again",
    "your {file} is {state}, {name}",
    # prices
    "the {food} costs {price}",
    "the {color} {thing} costs {price}",
    "that is {price}, please",
    "how much is the {food}",
    "i would like {food} and {food}, please",
    "the ticket to {city} is {price}",
    "your order will arrive {when}",
    # conversation
    "where is my {color} {thing}",
    "the {color} {thing} is {quality}",
    "{a_quality} {animal} sits on the {thing}",
    "the {quality} {animal} runs to the {color} house",
    "{person} has {a_quality} {color} {thing}",
    "{person} would like to {verb} {when}",
    "{person} wants to learn {language}",
    "can you {verb} with me {when}",
    "do you want to {verb} or {verb}",
    "i think {person} is in the {place}",
    "i don't know where the {thing} is",
    "i'm sorry, the {thing} is not here",
    "we have {food} and {food} for {meal}",
    "let's have {meal} at {clock}",
    "{meal} is ready, {name}",
    "do you have {a_quality} {thing}",
    "this is {a_quality} voice",
    "what is your name",
    "what time is it, {name}",
    "how can i help you {when}",
    "yes, i can hear you very well",
    "no, thank you, i'm fine",
    "open the {thing} and close the window",
    "turn the {machine} on and the light off",
    "please speak after the tone",
    "one moment please, {name}",
    "that's a very good idea",
    "i love {language} and {language}",
    "she lives in {city} near the {place}",
    "they are from {city}, not from {city}",
    "he will be back {when}",
    "i can't find my {thing}",
    "all our lines are busy, please hold",
    "press {digit} for {language}",
    "the quick brown fox jumps over the lazy dog",
    "have a nice day and a safe trip to {city}",
    "the first {thing} is {color}, the second is {color}",
    # the same words in other company: what is said next is rarely a template
    "i will take the {vehicle} to the {place}",
    "we will take the next {vehicle} {when}",
    "{person} will be in {city} {when}",
    "{person} will meet {person} at the {place}",
    "please meet me at the {place} {when}",
    "please meet me and {name} at {clock}",
    "can we meet at the {place} at {clock}",
    "i want to buy {a_quality} {thing} {when}",
    "she will buy {food} and {food} for {price}",
    "they have {a_quality} {thing} for {price}",
    "do you know where {person} is",
    "i know {person} very well",
    "do you know what time it is in {city}",
    "the wind in {city} is very {weather}",
    "the {weather} weather will be here {when}",
    "{weather} weather from {city} will arrive {when}",
    "my {animal} is behind the {thing}",
    "the {color} {animal} is in the {place}",
    "there is {a_quality} {animal} behind the {place}",
    "the {machine} in the {place} {failure}",
    "the {place} in {city} is {state}",
    "is the {machine} in the {place} {state}",
    "walk to the {place} and wait for {name}",
    "walk {n99} {unit} and turn {side} at the {road}",
    "go to the {place}, then turn {side}",
    "from {city} to {city} it takes {n99} {unit}",
)

HELD_OUT = (
    "please meet {name} at the {place} at {clock}",
    "the {weather} wind from {city} will be here {when}",
    "{person} will take the {vehicle} to {city} {when}",
    "the {color} {animal} is behind the {place}",
    "the {machine} in the {place} is {state}",
    "i would like to buy {a_quality} {thing} for {price}",
    "do you know {person} from {city}",
    "walk {n99} {unit} to the {place} and turn {side}",
)

ENGLISH = Grammar(
    templates=TEMPLATES,
    held_out=HELD_OUT,
    slots=SLOTS,
    makers={
        "n99": _number_to_99,
        "n999": _large_number,
        "digit": lambda rng: rng.choice(_ONES[:10]),
        "digits": _digits,
        "clock": _clock,
        "date": _date,
        "price": _price,
    },
)
