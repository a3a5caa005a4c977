"""Units, currencies and measure words of Mandarin, and what they are called."""

import re

from .mandarin_numbers import cardinal

_PREFIXED = {
    "m": ("米", {"k": "千", "d": "分", "c": "厘", "m": "毫", "μ": "微", "u": "微", "n": "纳"}),
    "g": ("克", {"k": "千", "m": "毫", "μ": "微", "u": "微", "n": "纳"}),
    "L": ("升", {"d": "分", "m": "毫", "μ": "微"}),
    "l": ("升", {"d": "分", "m": "毫", "μ": "微"}),
    "s": ("秒", {"m": "毫", "μ": "微", "u": "微", "n": "纳"}),
    "Hz": ("赫兹", {"k": "千", "M": "兆", "G": "吉", "T": "太"}),
    "W": ("瓦", {"m": "毫", "k": "千", "M": "兆", "G": "吉"}),
    "Wh": ("瓦时", {"k": "千", "M": "兆", "G": "吉"}),
    "V": ("伏", {"m": "毫", "k": "千"}),
    "A": ("安", {"m": "毫", "μ": "微"}),
    "Ah": ("安时", {"m": "毫"}),
    "Ω": ("欧姆", {"k": "千", "M": "兆"}),
    "F": ("法", {"μ": "微", "n": "纳", "p": "皮"}),
    "Pa": ("帕", {"h": "百", "k": "千", "M": "兆", "G": "吉"}),
    "J": ("焦", {"k": "千", "M": "兆"}),
    "N": ("牛", {"k": "千"}),
    "cal": ("卡", {"k": "千"}),
    "mol": ("摩尔", {"m": "毫", "μ": "微"}),
    "bps": ("比特每秒", {"k": "千", "K": "千", "M": "兆", "G": "吉"}),
    "lm": ("流明", {}),
    "lx": ("勒克斯", {}),
}
"""Base symbol: its name, and the prefixes in use."""

_NEEDS_PREFIX = frozenset({"F"})

_OTHERS = {
    "h": "小时",
    "hr": "小时",
    "min": "分钟",
    "mins": "分钟",
    "sec": "秒",
    "t": "吨",
    "lb": "磅",
    "lbs": "磅",
    "oz": "盎司",
    "ft": "英尺",
    "mph": "英里每小时",
    "kph": "公里每小时",
    "rpm": "转每分",
    "r/min": "转每分",
    "N·m": "牛米",
    "kW·h": "千瓦时",
    "fps": "帧每秒",
    "bpm": "次每分",
    "dB": "分贝",
    "px": "像素",
    "pp": "个百分点",
    "pct": "个百分点",
    "bp": "个基点",
    "BP": "个基点",
    "ha": "公顷",
    "mmHg": "毫米汞柱",
    "U": "单位",
    "IU": "国际单位",
    "kVA": "千伏安",
    "°C": "摄氏度",
    "℃": "摄氏度",
    "°F": "华氏度",
    "℉": "华氏度",
    "°": "度",
    "KB": " K B",
    "kB": " K B",
    "MB": " M B",
    "GB": " G B",
    "TB": " T B",
    "PB": " P B",
    "MB/s": " M B 每秒",
    "GB/s": " G B 每秒",
    "KB/s": " K B 每秒",
    "m/s²": "米每二次方秒",
    "m/s2": "米每二次方秒",
    "m/s^2": "米每二次方秒",
    "㎡": "平方米",
    "㎥": "立方米",
    "㎞": "公里",
    "㎝": "厘米",
    "㎜": "毫米",
    "㎏": "千克",
    "㎎": "毫克",
    "hz": "赫兹",
    "HZ": "赫兹",
    "KHz": "千赫兹",
    "mhz": "兆赫兹",
    "ghz": "吉赫兹",
    "Kg": "千克",
    "KG": "千克",
    "KM": "公里",
    "Km": "公里",
    "CM": "厘米",
    "MM": "毫米",
    "ML": "毫升",
    "KW": "千瓦",
    "kwh": "千瓦时",
    "KWh": "千瓦时",
    "KWH": "千瓦时",
    "mah": "毫安时",
    "MAH": "毫安时",
    "db": "分贝",
    "DB": "分贝",
}
"""With the wrong cases that people write.

Byte units are said by their letters: 吉字节 is correct, and nobody says it.
"""

_CURRENCY_CODES = {
    "RMB": "元",
    "CNY": "元",
    "USD": "美元",
    "EUR": "欧元",
    "GBP": "英镑",
    "JPY": "日元",
    "HKD": "港元",
    "TWD": "新台币",
    "KRW": "韩元",
    "SGD": "新加坡元",
    "AUD": "澳元",
    "CAD": "加元",
    "CHF": "瑞士法郎",
}

CURRENCIES = {
    "US$": "美元",
    "HK$": "港元",
    "NT$": "新台币",
    "A$": "澳元",
    "C$": "加元",
    "S$": "新加坡元",
    "JP¥": "日元",
    "$": "美元",
    "¥": "元",
    "￥": "元",
    "€": "欧元",
    "£": "英镑",
    "₩": "韩元",
    "₽": "卢布",
    "₹": "卢比",
    **_CURRENCY_CODES,
}
"""What stands before an amount of money: its name."""

_SQUARES = {"2": "平方", "²": "平方", "3": "立方", "³": "立方"}


def _units() -> dict[str, str]:
    units = dict(_OTHERS) | _CURRENCY_CODES
    for base, (name, prefixes) in _PREFIXED.items():
        if base not in _NEEDS_PREFIX:
            units[base] = name
        for prefix, prefix_name in prefixes.items():
            units[prefix + base] = prefix_name + name
    units["km"] = "公里"  # as people say, and 5 km must not sound like 5000 m
    for symbol in ("m", "km", "cm", "mm", "dm"):
        for power, power_name in _SQUARES.items():
            units[symbol + power] = power_name + units[symbol]
    return units


UNITS = _units()
"""Symbol: what it is called after a number."""


def _any_of(symbols: dict[str, str]) -> str:
    return "|".join(map(re.escape, sorted(symbols, key=len, reverse=True)))


_UNIT = rf"(?:{_any_of(UNITS)})"
_NO_GRADE = "(?<!A(?=[级景类座排区栋]))"  # 5A级景区 has no amperes

UNIT = rf"{_UNIT}(?:/(?:(?:10{{1,3}}|24) ?(?=[kmcglLh]))?{_UNIT})?(?![A-Za-z0-9²³]){_NO_GRADE}"
"""Regular expression of a unit, or of one unit per another."""

CURRENCY = rf"(?:{_any_of(CURRENCIES)})"
"""Regular expression of what stands before an amount of money."""

PERCENTS = {"%": "百分之", "‰": "千分之", "‱": "万分之", "ppm": "百万分之"}
"""Sign after a number: what is said before it."""

PERCENT = rf"(?:{_any_of(PERCENTS)})(?![A-Za-z])"

TEMPERATURES = frozenset({"摄氏度", "华氏度"})

_COUNTERS = (
    "个名台块角万亿千只条张件倍家种座间户口辆架艘部集场局轮回趟遍步本册卷支枝根颗粒片朵棵株头匹"
    "双对副套批样项点把杯瓶碗盘盒箱包袋桶份封幅扇起桩笔款股滴团群列道顶枚岁篇首句段页章"
    "节秒天夜时位斤米吨升亩克度成组门站国省市县校男女"
    "胜者端侧边方地番勺匙碟壶罐瓣束串堆届任圈餐科席球记票字"
)
"""Characters that count what the number before them says, so that 2 is 两 before them."""

COUNTER = re.compile(
    rf" ?(?:分(?!之)|层(?=楼)|次(?!元|方|函数|曲线|型|项)|人(?!转|称)|元(?!一次|二次|方程)|"
    rf"年(?!级)|周(?!目)|排(?! ?\d)|室(?=[\d一二三四]厅)|小时|小组|公[里斤尺分升顷]|平米|"
    rf"英[里尺寸镑]|海里|光年|平方|立方|摄氏|华氏|毫[米升克秒]|厘米|美[元金分]|"
    rf"[欧日港韩]元|星期|礼拜|连[胜败冠]|半|处(?![理于在方罚置])|[栋幢](?=[楼房别建大高小老新民居住教厂仓])|[汤茶小大][匙勺碗杯]|面(?!向)|大(?=[类块项优特亮看痛难法原因要人\d])|行(?!业|政)|毛|"
    rf"[{_COUNTERS}])"
)
"""What makes a 2 before it 两; not 二月, 二号, 二楼, 二级, 二两."""

COUNTING = re.compile(
    rf"(?:{COUNTER.pattern}| ?(?:[元块岁折月日余多几%‰]|来[个人次年岁天块元斤米张家名位]))"
)
"""What shows that the number before it counts something and names nothing."""

MEASURED = re.compile(rf" ?(?:{PERCENT}|{UNIT}|[万亿])")
"""A unit, a percent sign or a large scale."""

_PER = re.compile(r"(\d*) ?(.+)")


def unit_name(symbol: str) -> str:
    """Say a unit, or one unit per another ("km/h", "L/100km").

    Args:
        symbol: What `UNIT` has matched.
    """
    if symbol in UNITS:
        return UNITS[symbol]
    over, _, under = symbol.partition("/")
    per = _PER.fullmatch(under)
    assert per
    count = cardinal(per[1]).removeprefix("一") if per[1] else ""
    return f"{UNITS[over]}每{count}{UNITS[per[2]]}"
