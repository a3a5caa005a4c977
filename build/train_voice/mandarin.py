"""What the voice learns to say in Mandarin: simplified characters, numbers in characters."""

from __future__ import annotations

import random

from train_voice.grammar import Grammar

_DIGITS = "零一二三四五六七八九"


def number(value: int) -> str:
    """Return the characters of a number in 0 ... 999."""
    if value < 10:
        return _DIGITS[value]
    if value < 100:
        tens, ones = divmod(value, 10)
        return (_DIGITS[tens] if tens > 1 else "") + "十" + (_DIGITS[ones] if ones else "")
    hundreds, rest = divmod(value, 100)
    middle = "" if not rest else "零" if rest < 10 else "一" if rest < 20 else ""
    return f"{_DIGITS[hundreds]}百{middle}{number(rest) if rest else ''}"


def _number_to_99(rng: random.Random) -> str:
    return number(rng.randrange(3, 100))


def _clock(rng: random.Random) -> str:
    hour = rng.choice(("两", *(number(i) for i in (1, *range(3, 13)))))
    minute = rng.choice(("", "", "半", "一刻", f"{number(rng.randrange(11, 60))}分"))
    return f"{rng.choice(SLOTS['daypart'])}{hour}点{minute}"


def _date(rng: random.Random) -> str:
    return f"{number(rng.randrange(1, 13))}月{number(rng.randrange(1, 32))}号"


def _year(rng: random.Random) -> str:
    return "二零" + "".join(rng.choice(_DIGITS) for _ in range(2)) + "年"


def _digits(rng: random.Random) -> str:
    return "".join(rng.choice(_DIGITS) for _ in range(rng.randrange(3, 6)))


SLOTS = {
    "daypart": ("早上", "上午", "中午", "下午", "晚上"),
    "day": ("今天", "明天", "后天", "昨天", "星期一", "星期二", "星期三", "星期四", "星期五",
            "星期六", "星期天", "周末"),
    "city": ("北京", "上海", "广州", "深圳", "杭州", "南京", "西安", "成都", "武汉", "香港"),
    "place": ("火车站", "机场", "医院", "学校", "图书馆", "公园", "饭店", "超市", "银行", "地铁站",
              "电影院", "博物馆", "酒店", "办公室", "厨房", "花园"),
    "weather": ("晴天", "阴天", "多云", "下雨", "下雪", "刮风", "很冷", "很热", "很暖和", "很凉快"),
    "side": ("左", "右"),
    "direction": ("东", "南", "西", "北", "前"),
    "vehicle": ("火车", "飞机", "汽车", "地铁", "出租车", "公交车", "船", "自行车"),
    "person": ("我", "你", "他", "她", "我们", "他们", "爸爸", "妈妈", "老师", "医生", "朋友",
               "同学", "哥哥", "姐姐", "弟弟", "妹妹", "小王", "小李", "张先生", "孩子"),
    "color": ("红色", "蓝色", "绿色", "黄色", "黑色", "白色", "灰色"),
    "thing": ("书", "手机", "电脑", "桌子", "椅子", "衣服", "帽子", "钥匙", "照片", "票", "门",
              "窗户", "杯子", "包", "床", "信"),
    "food": ("米饭", "面条", "面包", "苹果", "牛奶", "鸡蛋", "鱼", "茶", "咖啡", "水果", "蔬菜",
             "豆腐", "汤", "糖", "肉"),
    "animal": ("猫", "狗", "鸟", "马"),
    "machine": ("系统", "网络", "服务器", "数据库", "打印机", "电池", "麦克风", "屏幕", "模型"),
    "state": ("正常", "准备好了", "在运行", "没有响应", "已经停止", "出错了", "太慢了", "断开了",
              "需要更新", "找不到"),
    "quality": ("大", "小", "新", "旧", "好", "快", "慢", "长", "短", "高", "贵", "便宜", "漂亮",
                "安静", "干净"),
    "verb": ("看书", "吃饭", "喝茶", "睡觉", "唱歌", "跳舞", "跑步", "学习", "工作", "休息", "游泳",
             "做饭", "旅行", "买东西", "写字", "听音乐", "打电话", "画画"),
    "language": ("中文", "英语", "数学", "历史"),
}  # fmt: skip

TEMPLATES = (
    "你好，{person}叫什么名字",
    "大家{daypart}好",
    "早上好，很高兴见到你",
    "晚安，明天见",
    "再见，{day}见",
    "欢迎来到{city}",
    "谢谢你的帮助",
    "不客气，请坐",
    "对不起，我来晚了",
    "没关系，请进",
    "请问{place}在哪里",
    "去{place}怎么走",
    "{place}在{place}的{direction}边",
    "请向{side}转，再走{n99}米",
    "一直往{direction}走，就到{place}了",
    "现在是{clock}",
    "会议{clock}开始",
    "{place}{clock}开门，{clock}关门",
    "今天是{year}{date}",
    "{day}是{date}",
    "{person}的生日是{date}",
    "{day}{city}{weather}",
    "今天的气温是{n99}度",
    "明天最高气温{n99}度，最低{n99}度",
    "外面{weather}，多穿{thing}",
    "去{city}的{vehicle}{clock}出发",
    "从{city}来的{vehicle}晚到{n99}分钟",
    "我要一张去{city}的票",
    "{person}坐{vehicle}去{place}",
    "{food}多少钱",
    "一共{n999}块钱",
    "这个{thing}要{n999}元，太贵了",
    "我想要{food}和{food}",
    "请给我一杯{food}",
    "{machine}{state}",
    "注意，{machine}{state}",
    "{machine}现在{state}，请稍等",
    "错误代码是{digits}",
    "电池还有百分之{n99}",
    "你有{n99}条新消息",
    "密码错误，请再试一次",
    "文件下载完成了百分之{n99}",
    "请重新启动{machine}",
    "我的电话号码是{digits}{digits}",
    "{n99}加{n99}等于{n99}",
    "{n99}减{n99}等于{n99}",
    "{person}喜欢{verb}",
    "{person}{day}想{verb}",
    "{person}正在{place}{verb}",
    "{person}和{person}一起{verb}",
    "{person}会说{language}吗",
    "{person}每天学习{language}",
    "{person}的{thing}是{color}的",
    "{color}的{thing}很{quality}",
    "{person}家有{quality}的{animal}",
    "那只{color}的{animal}真{quality}",
    "{person}在{place}门口等{person}",
    "你觉得这个{thing}{quality}不{quality}",
    "我不知道{thing}在哪儿",
    "因为{weather}，所以{person}不去{place}",
    "如果{weather}，我们就在家{verb}",
    "虽然很{quality}，但是我很喜欢",
    "{person}比{person}高",
    "请把{thing}放在桌子上",
    "请打开{thing}",
    "这是我第{n99}次来{city}",
    "你能听见我的声音吗",
    "我听不清楚，请再说一遍",
    "祝你生日快乐，身体健康",
    "祝你一路平安",
    "好的，没问题",
    "这里有人吗",
    "春天花开，秋天叶落",
    "夏天很热，冬天很冷",
    "山上有树，河里有鱼",
)

HELD_OUT = (
    "{person}{clock}在{place}见{person}",
    "{color}的{thing}在{place}",
    "{day}{person}坐{vehicle}来{city}",
    "{machine}{day}{state}",
)

MANDARIN = Grammar(
    templates=TEMPLATES,
    held_out=HELD_OUT,
    slots=SLOTS,
    makers={
        "n99": _number_to_99,
        "n999": lambda rng: number(rng.randrange(10, 1000)),
        "digits": _digits,
        "clock": _clock,
        "date": _date,
        "year": _year,
    },
)
