"""The words of the lessons."""

# ruff: noqa: SIM905 (lists of words read better as text)

from typing import Final

NAMES: Final = tuple(
    """
Ben Clara David Elena Ada Grace Hugo Iris Jonas Felix Liam Maria Noah Olga Kira Quinn Rosa Simon Tara Paul Vera Walter
Xenia Yusuf Umar Amir Bella Carlos Dora Zoe Fatima Georg Hana Ivan Emil Karim Lena Marco Nina Julia Petra Ravi Sofia
Tom Oscar Victor Wanda Yara Zara Ursula Beate Chen Diego Esther Anton Gita Heidi Igor Jana Finn Lucia Milan Nadia Otto
Kofi Rita Samir Tina Uwe Pablo Wei Yuki Aisha Bruno Vikram Dmitri Eva Frida Gustav Celia Ines Jack Keiko Leo Henry Mona
""".split()
)

CITIES: Final = tuple(
    """
Rome Berlin Madrid London Paris Lisbon Oslo Athens Dublin Vienna Warsaw Zurich Geneva Milan Prague Turin Venice Hamburg
Munich Naples Lyon Nice Marseille Porto Cologne Seville Bergen Stockholm Helsinki Valencia Tallinn Vilnius Krakow
Budapest Riga Bucharest Belgrade Zagreb Split Sofia Istanbul Cairo Tunis Rabat Ankara Dakar Lagos Nairobi Kampala Accra
Pretoria Tokyo Osaka Kyoto Durban Seoul Beijing Shanghai Taipei Busan Hanoi Manila Jakarta Delhi Bangkok Mumbai Karachi
Dhaka Tehran Chennai Baghdad Beirut Sydney Perth Amman Auckland Montreal Vancouver Boston Toronto Chicago Seattle
Houston Miami Denver Dallas Bogota Lima Quito Havana Santiago Brasilia Recife Montevideo Caracas Asuncion
""".split()
)

THINGS: Final = tuple(
    """
banana bread bridge camera apple candle carpet chair cherry button clock coffee compass curtain castle diamond dragon
drum engine cloud feather fiddle flower fountain desert garden ghost guitar hammer eagle harbor honey island jacket
forest kettle kitten ladder lemon glass library magnet meadow mirror helmet monkey museum needle ocean jungle orchid
oven owl peach lantern pearl pencil piano pillow marble pirate pocket potato puzzle mountain rain river robot rocket
orange sailor salad sandwich shell paper silver snow spoon stone pepper storm summer sunset table planet temple thunder
tiger tomato rabbit tower train tulip turtle saddle umbrella valley velvet village shadow violin wagon walnut water
spider whale willow window winter sugar wizard wolf yellow zebra teapot
""".split()
)

SUBJECTS: Final = tuple(
    """
weather time population price temperature distance schedule score balance address forecast status owner height recipe
depth speed altitude anthem weight mayor flag code rating currency review menu calendar agenda area invoice salary rank
level phone size shape length width budget voltage pressure humidity mass color age birthday deadline timetable
capacity route map seat gate density terminal platform album lyrics duration genre title publisher edition ticket
abstract translation definition spelling track grammar license changelog branch author commit checksum password token
summary quota latency bandwidth uptime synonym load memory backup snapshot version archive warranty receipt discount
release inventory supplier shipment location usage elevation climate season moonrise disk sunrise sunset pollen wind
manual snowfall rainfall traffic detour stock parking fuel mileage toll parcel fare visa passport embassy tide holiday
festival
""".split()
)

LOOKUPS: Final = tuple("get find fetch look_up show check read query retrieve search list load request view".split())

ACTIONS: Final = tuple(
    """
create add make send open start book order schedule register update change remove delete move copy rename
publish print export store save share post submit approve reject assign reserve plan record upload download
""".split()
)

OBJECTS: Final = tuple(
    """
event task reminder message note email ticket order report invoice meeting account folder file project playlist timer
booking table alarm list label comment issue contact page photo song video post survey form poll group recipe room desk
shelf parcel channel letter card key lamp box window light heater fan badge pump valve sensor camera door printer
backup snapshot
""".split()
)

FIELDS: Final = tuple(
    """
city name country region place user title subject topic person item book song film product artist player company
station team airport hotel river lake street planet star animal plant restaurant brand model device host island service
package table column species row tag group floor drug building task day month server year amount count number module
limit quantity volume percent key width height weight length room age score level index project page color shape
material hour style language format unit priority currency category status email rate phone note comment message depth
author owner
""".split()
)

FLAGS: Final = tuple(
    "urgent private active enabled visible public open paid remote final secret locked ready pinned".split()
)

LABELS: Final = tuple(
    """
low high small large medium red blue fast slow green weekly monthly never north daily south east left right always
morning draft done celsius west fahrenheit imperial short long evening plain bold news sports metric music
""".split()
)

SYLLABLES: Final = tuple(
    """
ba be bi bo bu da de di do du fa fe fi fo ga ge go gu ha he hi ho ja jo ka ke ki ko ku la le li lo lu ma me mi mo mu
na ne
ni no nu pa pe pi po ra re ri ro ru sa se si so su ta te ti to tu va ve vi vo wa we wi ya yo za ze zi zo bra cre dri fla
glo gri klo ple pra ske sla spi sto tra tri wha xan zen qui thor mark lund berg vik son ton ford ham ley wick stan grad
""".split()
)

LISTS: Final = (NAMES, CITIES, THINGS, SUBJECTS, ACTIONS, OBJECTS, FIELDS, FLAGS, LABELS)
LISTED: Final = frozenset(word.lower() for words in LISTS for word in words)
CONSONANTS: Final = tuple(
    """
b c d f g h j k l m n p qu r s t v w x y z bl br ch cl cr dr fl fr gr ll mb nd ng nt pl pr rd rk rm rn rt sh sk sp ss
st str th tr tt wh
""".split()
)
VOWELS: Final = tuple("a e i o u a e i o u ai au ea ee ei ie oa oo ou io".split())

SCRIPTS: Final = (
    "абвгдежзиклмнопрстуфхцчшщыьэюя",
    "αβγδεζηθικλμνξοπρστυφχψω",
    "あいうえおかきくけこさしすせそたちつてとなにぬねのはひふへほまみむめもやゆよらりるれろわをん",
    "アイウエオカキクケコサシスセソタチツテトナニヌネノ",
    "日月火水木金土山川田人口手目耳心上下左右中大小学校先生天空海花鳥風雨雪春夏秋冬",
    "가나다라마바사아자차카타파하고노도로모보소오조초",
    "ابتثجحخدذرزسشصضطظعغفقكلمنهوي",
    "אבגדהוזחטיכלמנסעפצקרשת",
    "अआइईउऊएऐओऔकखगघचछजझटठडढतथदधनपफबभमयरलवशषसह",
    "กขคงจฉชซญดตถทธนบปผพฟมยรลวสหอ",
    "äöüßéèêàçñåøæłśżčřžő",
    "😀😂🥰😎🤔😴🎉🚀🌈🌍🔥💡🍎🍕🍩🐱🐶🦊🐢🌵🌻⚽🎸🎲📚✏️❤️⭐",
)
"""Letters of scripts that no other lesson uses."""
