"""Numbers that name something and count nothing: telephones, codes, addresses of the network."""

import re

from .mandarin_numbers import MAX_CARDINAL_DIGITS, cardinal, digits
from .mandarin_place import Place, Rule, rule
from .mandarin_units import COUNTING, MEASURED

_LINK = r"(?:号码?|[为是：:]|分别|[ “\"「（(\[【])*$"
CODE_WORDS = (
    "(?<![鞋尺筹裤衣帽大小均加])码|[前后末][一二三四五六七八]位|端口|"
    "(?<![A-Za-z])(?:CVV2?|PIN|ID|[Zz]ip(?: ?[Cc]ode)?)|"
    "编号|尾号|[账帐]号|[账帐]户|卡号|单号|证号|工号|学号|型号|机型|代号|批号|序列号|流水号|"
    "车牌号?|手机号|座机号|身份证|邮编|口令|QQ群?|群号|微信号|机号|桌号|座位号|护照|案号|票号|货号|书号|考号|档案号|分机|"
    "合同号|发票号|会员号|房间?号|门牌号|航班号?|车次|热线|电话|报警|火警|急救|拨打|请拨|拨|致电|来电|客服|传真"
)
"""Words with which a number is a name, for use inside a regular expression."""

WEAK_CODE_WORDS = (
    "订单|运单|快递|合同|发票|会员|股票|微信|快件|联系|短信|手机|座机|打|航空|登机口|交通事故"
)
"""Words with which only a long number is a name."""

_LONG = 5

PROVINCES = "京津沪渝冀豫云辽黑湘皖鲁新苏浙赣鄂桂甘晋蒙陕吉闽贵粤青藏川宁琼"
"""First character of a number plate."""

_CODE_WORD = re.compile(rf"(?:{CODE_WORDS}){_LINK}")
_WEAK_WORD = re.compile(rf"(?:{WEAK_CODE_WORDS}){_LINK}")
_HOTLINES = frozenset({"110", "114", "119", "120", "122"})
_AFTER_LETTERS = re.compile(
    rf"(?:{CODE_WORDS}|{WEAK_CODE_WORDS})(?:号码?|[为是：: ])*[A-Za-z]{{1,8}}-?$"
)
_TRANSFER = re.compile(r"(?:[\d，,）)；; ]|请|再)转(?:分机)? ?$")
_HOTLINE = re.compile(r"(?:警|指挥中心|报警|急救|救护|火警|热线|客服|电话|平台|便民|投诉|举报)")
_ISO_DATE = re.compile(r"[12]\d{3}-[01]\d-[0-3]\d", re.ASCII)
_TRAIN = re.compile(r"[GDCZTKYSL]$")
_FLIGHT = re.compile(r"(?:^|[^A-Za-z])[A-Z][A-Z0-9]$")
_FLOWN = re.compile(r" ?(?:次?航班|客机|次)")
_PLATE = re.compile(rf"[{PROVINCES}][A-Z] ?·? ?[A-Z0-9]{{0,5}}$")
_ROOM = re.compile(
    r" ?(?:室|房间?|合约|中学|教室|病房|会议室|包[厢间]|宿舍|寝室|办公室|展[厅位]|"
    r"[国省县]道|路|次列?车|医院)"
)
_NAME = re.compile("[A-Za-z] $")
_BUILDING = re.compile(r"(?:[座栋幢楼层]|单元) ?$")
_COLLEGES = re.compile(r" ?(?:高校|大学|工程|院校|、|/|和|工作制|毕业)")


def names_code(before: str) -> bool:
    """Say whether a text ends in a word with which a number is a name."""
    return bool(_CODE_WORD.search(before) or _WEAK_WORD.search(before))


def _run(place: Place) -> str:
    """Say all digits of the match, one by one."""
    return digits(place.match[0], place.one)


def _mobile(place: Place) -> str | None:
    """Say each digit; stars that hide digits are said too."""
    if place.match[0].isdigit() and place.follows(COUNTING):
        return None
    return "".join("星" if sign == "*" else digits(sign, place.one) for sign in place.match[0])


def _abroad(place: Place) -> str | None:
    """Read a number with its country's code, at least eight digits."""
    is_number = sum(sign.isdigit() for sign in place.match[0]) >= 8
    return "加" + _run(place) if is_number else None


def _landline(place: Place) -> str:
    """The extension is said behind 转."""
    extension = place.match["x"]
    if not extension:
        return _run(place)
    main = place.match[0][: place.match.start("x") - place.match.start()]
    return f"{digits(main, place.one)}转{digits(extension, place.one)}"


def _well_known(place: Place) -> str | None:
    return None if place.follows(COUNTING) else _landline(place)


def _identity(place: Place) -> str:
    """Read a very long number; that of an identity card may end in X."""
    return _run(place) + (" X" if place.match[0][-1] in "Xx" else "")


def _code(place: Place) -> str | None:
    """Read digits behind a word such as 验证码 one by one, unless they count something."""
    written, before = place.match[0], place.before
    has_word = (
        _CODE_WORD.search(before) or _TRANSFER.search(before) or _AFTER_LETTERS.search(before)
    )
    is_long = len(written) >= _LONG or written in _HOTLINES
    if not has_word and not (is_long and _WEAK_WORD.search(before)):
        return None
    if _ISO_DATE.fullmatch(written):
        return None
    return None if place.follows(COUNTING) else _run(place)


def _hotline(place: Place) -> str | None:
    return _run(place) if place.follows(_HOTLINE) else None


def _network(place: Place) -> str | None:
    """Read an IPv4 address, with its port."""
    address = place.match["ip"]
    if any(int(part) > 255 for part in address.split(".")):
        return None
    words = "点".join(digits(part, place.one) for part in address.split("."))
    port = place.match["port"]
    if not port:
        return words
    if place.match["joint"] == "/":
        return f"{words}斜杠{cardinal(port)}"
    return f"{words}冒号{digits(port, place.one)}"


def _another(place: Place) -> str | None:
    """Read the second of two telephones: 0571-88888888/88888889."""
    return _run(place) if re.search(r"\d{7,8} ?[/、] ?$", place.before) else None


def _named(place: Place) -> str | None:
    """Read the numbers of trains, flights and number plates, and long ones behind letters."""
    if len(place.match[0]) > 2 and not place.said and re.search("[A-Za-z]-?$", place.before):
        return _run(place)
    is_train = _TRAIN.search(place.before) and place.follows(re.compile(r" ?(?:次|列车|动车|高铁)"))
    is_flight = _FLIGHT.search(place.before) and place.follows(_FLOWN)
    return _run(place) if is_train or is_flight or _PLATE.search(place.before) else None


def _plate_letter(place: Place) -> str | None:
    """Part the letters of a number plate; the one behind the province is not asked."""
    is_plate = _PLATE.search(place.before) and place.before[-1:].isascii()
    return f" {place.match[0]}" if is_plate and place.before[-1:].isalpha() else None


def _plate_dot(place: Place) -> str | None:
    return "" if _PLATE.search(place.before) else None


def _room(place: Place) -> str | None:
    """Read rooms and roads one by one; a short number of a road or a bus is a number."""
    if place.before.endswith("第"):
        return None
    is_inside = _BUILDING.search(place.before) and not place.follows(COUNTING)
    return _run(place) if is_inside or place.follows(_ROOM) else None


def _model(place: Place) -> str | None:
    """Read the number of a product behind its Latin name: RTX 4090."""
    is_name = _NAME.search(place.before) and not place.follows(COUNTING)
    is_round = place.match[0].endswith("00")
    return digits(place.match[0]) if is_name and not (is_round or place.follows(MEASURED)) else None


def _college(place: Place) -> str | None:
    is_second = re.search("985[、/和]?$", place.before) is not None
    return digits(place.match[0]) if is_second or place.follows(_COLLEGES) else None


def _chain(place: Place) -> str:
    """Read "12-3-402", building, entrance and room; the hyphens of a longer number only group."""
    parts = place.match[0].split("-")
    if sum(map(len, parts)) >= 9 or len(parts) > 4:
        return _run(place)
    return "杠".join(_short(part, place.one) for part in parts)


def _short(written: str, one: str) -> str:
    return cardinal(written) if len(written) < 3 and written[0] != "0" else digits(written, one)


def _padded(place: Place) -> str:
    """Read a number with zeros at its head; two digits are an index, with 一."""
    if place.before.endswith("第"):
        return cardinal(place.match[0])
    return digits(place.match[0], place.one if len(place.match[0]) > 2 else "一")


_END = r"(?![\d*])"
_EXTENSION = r"(?:(?:-| ?转 ?)(?P<x>\d{1,6})(?!\d))?"

DIGIT_RULES: tuple[Rule, ...] = (
    rule(rf"\d{{{MAX_CARDINAL_DIGITS + 1},}}[Xx]?", _identity),
    rule(
        r"(?P<ip>\d{1,3}(?:\.\d{1,3}){3})(?:(?P<joint>[:/])(?P<port>\d{1,5}))?(?![\d.])", _network
    ),
    rule(rf"(?:(?:00)?86[- ]?)?1[3-9]\d[- ]?(?:\d{{4}}|\*{{4}})[- ]?\d{{4}}{_END}", _mobile),
    rule(rf"(?:86[- ]?)?1[3-9]\d{{2}}[- ]?\d{{3}}[- ]?\d{{4}}{_END}", _mobile),
    rule(rf"0\d{{2,3}}[- ]?\d{{4}}[- ]?\d{{3,4}}(?!\d){_EXTENSION}", _landline),
    rule(rf"0\d{{2,3}}-\d{{3,8}}(?!\d){_EXTENSION}", _landline),
    rule(rf"[48]00[- ]?(?:\d{{3}}[- ]?\d{{4}}|\d{{4}}[- ]?\d{{3}})(?!\d){_EXTENSION}", _well_known),
    rule(rf"(?:12306|12315|10086)(?!\d|\.\d){_EXTENSION}", _well_known),
    rule(r"(?:110|119|120|122|1\d{4}|9\d{4})(?!\d)", _hotline),
    rule(r"\d{2,16}(?:[- ]\d{2,16}){0,8}(?!\d|[.:：]\d|-\d+-\d)", _code),
    rule(r"\d{7,8}(?!\d)", _another),
    rule(r"\d{1,5}(?!\d|-\d+-\d)", _named),
    rule(r"\d{3,4}(?!\d)", _room),
    rule(r"\d{3,4}(?![\d.,:/×-])", _model),
    rule(r"(?:985|211)(?!\d)", _college),
    rule(r"996(?!\d)(?=工作制|$|[，。、！？的加])", lambda place: digits(place.match[0])),
)
"""Rules at the first digit of a number, before all others."""

LATE_DIGIT_RULES: tuple[Rule, ...] = (
    rule(r"\d+(?:-\d+){2,}", _chain),
    rule(
        r"(?P<n>1080|2160|1440|720|480|360)(?= ?[pP](?![A-Za-z]))",
        lambda place: digits(place.match[0]),
    ),
    rule(r"0\d{1,15}(?![\d.]|:\d)", _padded),
)
"""Rules at the first digit, after those of dates."""

LETTER_RULES: tuple[Rule, ...] = (rule("[A-Z]", _plate_letter),)
"""Rules at a Latin letter."""

SIGN_RULES: tuple[Rule, ...] = (rule("·", _plate_dot),)
"""Rules at a dot."""

BRACKET_RULES: tuple[Rule, ...] = (
    rule(rf"[(（]0\d{{2,3}}[)）] ?\d{{3,4}}[- ]?\d{{3,4}}(?!\d){_EXTENSION}", _landline),
)
"""Rules at an opening bracket."""

PLUS_RULES: tuple[Rule, ...] = (rule(r"\+\d{1,3}(?:[- ]?\(?\d{1,5}\)?){2,6}(?!\d)", _abroad),)
"""Rules at a plus sign."""
