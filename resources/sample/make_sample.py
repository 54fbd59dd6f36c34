#!/usr/bin/env python3
"""Makes the text of the sample project: a corpus to learn from and questions to be fine-tuned on.

    python3 make_sample.py corpus FILE       plain sentences, a paragraph a line, no question
    python3 make_sample.py questions         train.jsonl and eval.jsonl beside this script
    python3 make_sample.py words FILE        what the tokenizer is made from

Needs nothing but Python 3. The same bytes on every machine: one seed, no clock, no set order.

Every fact is stated in the corpus in several ways. train.jsonl asks about most facts;
eval.jsonl asks about the others, in the same words, and every answer follows from the corpus.
So a model that has only read the corpus knows the answers and not how to give them.
"""

import json
import pathlib
import random
import sys

SEED = 20250101
PARAGRAPHS = 24000
STORIES = 700
TRAIN_ROWS = 2000
EVAL_ROWS = 200
HELD_OUT = 0.15  # of the facts of a topic

NAMES = ["Anna", "Ben", "Clara", "David", "Emma", "Felix", "Grace", "Hugo", "Ida", "Jonas", "Kate",
         "Leo", "Mia", "Noah", "Olga", "Paul", "Rosa", "Sam", "Tom", "Vera"]
THINGS = ["apples", "balls", "books", "coins", "cups", "eggs", "flowers", "pens", "shells", "stones"]
PLACES = ["garden", "kitchen", "park", "school", "shop", "library", "forest", "market", "barn",
          "station"]
PETS = ["dog", "cat", "horse", "rabbit", "goat", "hen", "parrot", "mouse"]
DAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]
MONTHS = ["January", "February", "March", "April", "May", "June", "July", "August", "September",
          "October", "November", "December"]
OPPOSITES = """hot cold|big small|fast slow|old young|high low|wet dry|full empty|open closed|
light dark|loud quiet|early late|hard soft|happy sad|long short|clean dirty|strong weak|near far|
rich poor|thick thin|deep shallow|left right|up down|in out|first last|day night|summer winter|
sweet sour|heavy light|wide narrow|rough smooth|true false|brave afraid|awake asleep|begin end|
push pull|buy sell|give take|laugh cry|win lose|remember forget|inside outside|above below|
before after|front back|north south|east west|more less|always never|easy difficult|sharp blunt"""
COLOURS = """a banana yellow|a lemon yellow|the sun yellow|a canary yellow|a tomato red|a cherry red|
a strawberry red|a fire engine red|a ruby red|grass green|a frog green|a leaf green|a cucumber green|
a pea green|the sky blue|the sea blue|a sapphire blue|a blueberry blue|snow white|milk white|a swan white|
salt white|coal black|a raven black|tar black|an orange orange|a carrot orange|a pumpkin orange|
chocolate brown|a bear brown|a chestnut brown|a flamingo pink|a pig pink|an elephant grey|a mouse grey|
a plum purple|an aubergine purple|a violet purple"""
KINDS = """fruit: apple, banana, cherry, grape, lemon, melon, orange, peach, pear, plum
vegetable: bean, cabbage, carrot, cucumber, leek, onion, pea, potato, pumpkin, turnip
animal: bear, cat, cow, dog, fox, goat, horse, lion, mouse, pig, rabbit, sheep, tiger, wolf
bird: crow, duck, eagle, goose, hen, owl, parrot, raven, robin, swan
fish: cod, eel, herring, pike, salmon, shark, trout, tuna
insect: ant, bee, beetle, butterfly, fly, wasp
tree: ash, beech, birch, elm, fir, maple, oak, pine, willow
flower: daisy, lily, rose, tulip, violet
tool: axe, drill, file, hammer, rake, saw, shovel, spade
instrument: bell, cello, drum, flute, guitar, harp, piano, trumpet, violin
vehicle: bicycle, boat, bus, car, lorry, plane, ship, train, tram"""
YOUNG = """dog puppy|cat kitten|cow calf|horse foal|sheep lamb|pig piglet|hen chick|duck duckling|
goose gosling|goat kid|bear cub|deer fawn|swan cygnet|frog tadpole|eagle eaglet|owl owlet"""
SOUNDS = """dog woof|cat meow|cow moo|sheep baa|pig oink|duck quack|horse neigh|hen cluck|bee buzz|
owl hoot|mouse squeak|lion roar|crow caw|snake hiss"""
HOMES = """bee a hive|bird a nest|dog a kennel|horse a stable|pig a sty|spider a web|fish water|
rabbit a burrow|lion a den|cow a barn|ant a hill|bear a cave|fox a hole|king a palace|
sailor a ship|farmer a farm"""
LEGS = """dog 4|cat 4|cow 4|horse 4|hen 2|duck 2|spider 8|ant 6|bee 6|beetle 6|fly 6|snake 0|fish 0|
eagle 2|sheep 4|crab 10|owl 2|frog 4|wasp 6|swan 2"""
PLURALS = """mouse mice|goose geese|child children|foot feet|tooth teeth|man men|woman women|
leaf leaves|knife knives|wolf wolves|sheep sheep|fish fish|ox oxen|box boxes|bus buses|city cities|
baby babies|lady ladies|cherry cherries|half halves|loaf loaves|dish dishes|potato potatoes|
tomato tomatoes|house houses|tree trees|cat cats|dog dogs|book books|pen pens"""
TOOLS = """cut paper: scissors|write a letter: a pen|dig a hole: a spade|eat soup: a spoon|
open a door: a key|sweep the floor: a broom|hit a nail: a hammer|cut bread: a knife|
tell the time: a clock|see far: a telescope|keep dry in the rain: an umbrella|catch a fish: a net|
comb your hair: a comb|cross the river: a bridge|climb the wall: a ladder|boil water: a kettle|
cut wood: a saw|dry your hands: a towel|light the room: a lamp|call a friend: a telephone"""
JOBS = """baker bakes bread|teacher teaches children|farmer grows food|doctor helps the sick|
pilot flies planes|sailor sails ships|tailor makes clothes|cook makes meals|painter paints pictures|
writer writes books|singer sings songs|miner digs for coal|driver drives cars|builder builds houses|
gardener grows flowers|postman brings letters|fisherman catches fish|judge hears cases|
dentist looks after teeth|shoemaker makes shoes"""
AMOUNTS = """days a week 7|months a year 12|hours a day 24|minutes an hour 60|seconds a minute 60|
seasons a year 4|weeks a year 52|letters the alphabet 26|corners a square 4|corners a triangle 3|
wheels a bicycle 2 on|wheels a car 4 on|fingers a hand 5 on|toes a foot 5 on|years a century 100"""


def pairs(text):
    return [entry.strip() for entry in text.split("|")]


def article(noun):
    return ("an " if noun[0] in "aeiou" else "a ") + noun


def capital(text):
    return text[0].upper() + text[1:]


# A fact: its questions, the same as somebody wonders, its one answer, and other sentences that say it.
def fact(questions, wonder, answer, *statements):
    return {"questions": questions, "wonder": wonder, "answer": answer,
            "statements": [answer, *statements]}


def arithmetic(word, a, b, result, *statements):
    sum_ = f"{a} {word} {b}"
    return fact([f"What is {sum_}?", f"How much is {sum_}?"], f"how much {sum_} is",
                f"{sum_} is {result}.", *statements)


def sums():
    return [arithmetic("plus", a, b, a + b, f"If you add {b} to {a}, you get {a + b}.",
                       f"We count {a} and then {b} more, because {a} plus {b} is {a + b}.")
            for a in range(21) for b in range(21)]


def differences():
    return [arithmetic("minus", a, b, a - b, f"If you take {b} from {a}, {a - b} is left.")
            for a in range(21) for b in range(a + 1)]


def products():
    return [arithmetic("times", a, b, a * b, f"If you count {b} for {a} times, you reach {a * b}.")
            for a in range(11) for b in range(11)]


def numbers():
    facts = []
    for n in range(60):
        facts.append(fact([f"Which number comes after {n}?"],
                          f"which number comes after {n}", f"{n + 1} comes after {n}.",
                          f"The number after {n} is {n + 1}."))
        facts.append(fact([f"Which number comes before {n + 1}?"],
                          f"which number comes before {n + 1}", f"{n} comes before {n + 1}.",
                          f"The number before {n + 1} is {n}."))
        kind = "odd" if n % 2 else "even"
        facts.append(fact([f"Is {n} even or odd?"], f"if {n} is even or odd", f"{n} is {kind}.",
                          f"The number {n} is {kind}."))
    return facts


def comparisons():
    facts = []
    for a in range(31):
        for b in range(31):
            if a != b and (7 * a + b) % 5 == 0:
                big, small = max(a, b), min(a, b)
                facts.append(fact([f"Which number is greater, {a} or {b}?"],
                                  f"which number is greater, {a} or {b}",
                                  f"{big} is greater than {small}."))
                facts.append(fact([f"Which number is less, {a} or {b}?"],
                                  f"which number is less, {a} or {b}",
                                  f"{small} is less than {big}."))
    return facts


def calendar():
    facts = []
    for what, names in (("day", DAYS), ("month", MONTHS)):
        for i, name in enumerate(names):
            after = names[(i + 1) % len(names)]
            facts.append(fact([f"Which {what} comes after {name}?"],
                              f"which {what} comes after {name}", f"{after} comes after {name}.",
                              f"The {what} after {name} is {after}."))
            facts.append(fact([f"Which {what} comes before {after}?"],
                              f"which {what} comes before {after}",
                              f"{name} comes before {after}.",
                              f"The {what} before {after} is {name}."))
    return facts


def words():
    facts = []
    for entry in pairs(OPPOSITES):
        a, b = entry.split()
        for x, y in ((a, b),) if a == "heavy" or b == "after" else ((a, b), (b, a)):
            facts.append(fact([f"What is the opposite of {x}?"],
                              f"what the opposite of {x} is", f"The opposite of {x} is {y}.",
                              f"If it is not {x}, then it may be {y}."))
    for entry in pairs(PLURALS):
        one, many = entry.split()
        facts.append(fact([f"What is the plural of {one}?"],
                          f"what the plural of {one} is", f"The plural of {one} is {many}.",
                          f"There is one {one} here and there are two {many} there."))
    return facts


def things():
    facts = []
    for entry in pairs(COLOURS):
        thing, colour = entry.rsplit(" ", 1)
        facts.append(fact([f"What colour is {thing}?"], f"what colour {thing} is",
                          f"{capital(thing)} is {colour}.",
                          f"The colour of {thing} is {colour}."))
    for line in KINDS.split("\n"):
        kind, members = line.split(": ")
        for member in members.split(", "):
            facts.append(fact([f"What is {article(member)}?"], f"what {article(member)} is",
                              f"{capital(article(member))} is {article(kind)}.",
                              f"We call {article(member)} {article(kind)}."))
    for entry in pairs(TOOLS):
        task, tool = entry.split(": ")
        facts.append(fact([f"What do you use to {task}?"], f"what you use to {task}",
                          f"You use {tool} to {task}.",
                          f"To {task} you need {tool}."))
    for entry in pairs(JOBS):
        who, does = entry.split(" ", 1)
        facts.append(fact([f"What does {article(who)} do?"], f"what {article(who)} does",
                          f"{capital(article(who))} {does}.",
                          f"It is {article(who)} who {does}."))
    return facts


def animals():
    facts = []
    for entry in pairs(YOUNG):
        old, young = entry.split()
        facts.append(fact([f"What is a young {old} called?"], f"what a young {old} is called",
                          f"A young {old} is called {article(young)}.",
                          f"The child of {article(old)} is {article(young)}."))
    for entry in pairs(SOUNDS):
        who, sound = entry.split()
        facts.append(fact([f"What does {article(who)} say?"], f"what {article(who)} says",
                          f"{capital(article(who))} says {sound}.",
                          f"We hear {sound} when {article(who)} is near."))
    for entry in pairs(HOMES):
        who, home = entry.split(" ", 1)
        facts.append(fact([f"Where does {article(who)} live?"], f"where {article(who)} lives",
                          f"{capital(article(who))} lives in {home}.",
                          f"The home of {article(who)} is {home}."))
    for entry in pairs(LEGS):
        who, legs = entry.split()
        facts.append(fact([f"How many legs does {article(who)} have?"],
                          f"how many legs {article(who)} has", f"{capital(article(who))} has {legs} legs.",
                          f"We count {legs} legs when we look at {article(who)}."))
    return facts


def amounts():
    facts = []
    for entry in pairs(AMOUNTS):
        part = entry.split()
        where = "on" if part[-1] == "on" else "in"
        whole, count = " ".join(part[1:3]), part[3]
        facts.append(fact([f"How many {part[0]} are {where} {whole}?"],
                          f"how many {part[0]} are {where} {whole}",
                          f"There are {count} {part[0]} {where} {whole}.",
                          f"{capital(whole)} has {count} {part[0]}."))
    return facts


# Every person is somebody: without facts of their own all names would mean the same.
def people():
    r = random.Random(SEED + 2)
    facts = []
    for i, name in enumerate(NAMES):
        age, pet, colour = 5 + i, r.choice(PETS), r.choice(["red", "green", "blue", "yellow", "white"])
        job = pairs(JOBS)[i].split()[0]
        facts.append(fact([f"How old is {name}?"], f"how old {name} is", f"{name} is {age} years old."))
        facts.append(fact([f"Which animal does {name} have?"], f"which animal {name} has",
                          f"{name} has {article(pet)}.", f"The {pet} of {name} is near."))
        facts.append(fact([f"Which colour does {name} like?"], f"which colour {name} likes",
                          f"{name} likes {colour}.", f"The house of {name} is {colour}."))
        facts.append(fact([f"What is {name}?"], f"what {name} is", f"{name} is {article(job)}.",
                          f"The work of {name} is the work of {article(job)}."))
    return facts


# Small stories: the answer is one sum away from what was just said.
def story(r, cast):
    a, b = r.sample(cast, 2)
    thing, n, m = r.choice(THINGS), r.randint(2, 10), r.randint(2, 10)
    if r.random() < 0.5:
        told, sum_, left = f"{a} has {n} {thing} and gets {m} more.", f"{n} plus {m}", n + m
    else:
        told = f"{a} has {n + m} {thing} and gives {m} to {b}."
        sum_, left = f"{n + m} minus {m}", n
    answer = f"Now {a} has {left} {thing}."
    return fact([f"{told} How many {thing} are left?" if "gives" in told
                 else f"{told} How many {thing} are there?"], "",
                f"There are {left} {thing}.",
                f"{told} {answer}", f"{told} {sum_} is {left}. {answer}",
                f"{told} Somebody wants to know how many {thing} there are. There are {left} {thing}.")


def meeting(r, cast):
    a, b = r.sample(cast, 2)
    p, q = r.sample(PLACES, 2)
    who, where = r.choice(((a, p), (b, q)))
    return r.choice([f"{a} is in the {p} and {b} is in the {q}. {who} is in the {where}.",
                     f"{a} goes to the {p}. {b} goes to the {q}. Now {who} is in the {where}."])


TOPICS = [("sums", sums, 6), ("differences", differences, 4), ("products", products, 3),
          ("numbers", numbers, 3), ("comparisons", comparisons, 4), ("calendar", calendar, 3),
          ("words", words, 5), ("things", things, 6), ("animals", animals, 3), ("amounts", amounts, 1),
          ("people", people, 5)]
STORY_WEIGHT, EVERYDAY_WEIGHT = 7, 2


def everyday(r, cast):
    """A sentence that holds no fact: how people talk."""
    a, b = r.sample(cast, 2)
    return r.choice([
        f"{a} goes to the {r.choice(PLACES)} with {b}.", f"{a} likes {r.choice(THINGS)} very much.",
        f"It is {r.choice(DAYS)} and {a} is at home.", f"{a} and {b} sit in the {r.choice(PLACES)}.",
        f"{b} tells {a} a story about a {r.choice(['dog', 'cat', 'horse', 'fox', 'king'])}.",
        f"In {r.choice(MONTHS)} {a} visits {b}.", f"{a} reads a book and {b} listens.",
        f"{b} asks and {a} answers.", f"{a} knows a lot and tells {b} all of it."])


def spoken(r, cast, statement):
    """The same sentence, sometimes as somebody says it."""
    a, b = r.sample(cast, 2)
    choice = r.randrange(12)
    if choice == 0:
        return f"{a} says: {statement}"
    if choice == 1:
        return f"{a} tells {b} this: {statement} {b} says it again: {statement}"
    return statement


def wondered(r, cast, about):
    """Somebody wants to know, and somebody tells: no question, but what a question is about."""
    a, b = r.sample(cast, 2)
    wish = r.choice(["wants to know", "asks", "wonders"])
    return f"{a} {wish} {about['wonder']}. {r.choice([b + ' says: ', ''])}{about['answer']}"


def sentence(r, cast, topics, weights):
    chosen = r.choices(range(len(weights)), weights)[0]
    if chosen == len(topics):
        return everyday(r, cast)
    if chosen == len(topics) + 1 and r.random() < 0.2:
        return meeting(r, cast)
    if chosen == len(topics) + 1:
        return r.choice(story(r, cast)["statements"][1:])
    about = r.choice(topics[chosen])
    if r.random() < 0.4:
        return wondered(r, cast, about)
    return spoken(r, cast, r.choice(about["statements"]))


def corpus():
    r = random.Random(SEED)
    topics = [make() for _, make, _ in TOPICS]
    weights = [weight for _, _, weight in TOPICS] + [EVERYDAY_WEIGHT, STORY_WEIGHT]
    lines = []
    for _ in range(PARAGRAPHS):
        cast = r.sample(NAMES, 3)  # a paragraph is about three people
        sentences = []
        while sum(len(s) for s in sentences) < 260:
            sentences.append(sentence(r, cast, topics, weights))
        lines.append(" ".join(sentences))
    return lines


# Corpus and training questions without punctuation, so that no piece of the tokenizer holds any
# ("10." must not be another token than "10"); then every printable character once.
def words_for_tokenizer():
    lines = corpus()
    here = pathlib.Path(__file__).resolve().parent
    with open(here / "train.jsonl", encoding="utf-8") as file:
        lines += [json.loads(line)["question"] for line in file]
    table = str.maketrans(".,:?", "    ")
    return [line.translate(table) for line in lines] + [" ".join(map(chr, range(33, 127)))]


def write_lines(path, lines):
    pathlib.Path(path).write_text("\n".join(lines) + "\n", encoding="utf-8")


def rows(facts, r):
    return [{"question": r.choice(f["questions"]), "answer": f["answer"]} for f in facts]


def write_rows(name, rows_):
    text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows_)
    (pathlib.Path(__file__).resolve().parent / name).write_text(text, encoding="utf-8")


def questions():
    r = random.Random(SEED + 1)
    train, held = [], []
    told = {"stories": [story(r, NAMES) for _ in range(STORIES)]}
    for name, make, _ in TOPICS:
        told[name] = make()
    for facts in told.values():
        r.shuffle(facts)
        cut = max(1, round(HELD_OUT * len(facts)))
        held.append(facts[:cut])
        train.extend(facts[cut:])
    r.shuffle(train)
    train_rows = rows(train, r)[:TRAIN_ROWS]
    # As many of every topic as its share of what is held out.
    total = sum(len(h) for h in held)
    eval_facts = [f for h in held for f in h[:max(1, round(EVAL_ROWS * len(h) / total))]]
    r.shuffle(eval_facts)
    seen = {row["question"] for row in train_rows}
    eval_rows = [row for row in rows(eval_facts, r) if row["question"] not in seen][:EVAL_ROWS]
    write_rows("train.jsonl", train_rows)
    write_rows("eval.jsonl", eval_rows)


def main():
    if len(sys.argv) == 3 and sys.argv[1] == "corpus":
        write_lines(sys.argv[2], corpus())
    elif len(sys.argv) == 3 and sys.argv[1] == "words":
        write_lines(sys.argv[2], words_for_tokenizer())
    elif len(sys.argv) == 2 and sys.argv[1] == "questions":
        questions()
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
