// Thoughts of an assistant: where the prompt opens them, in which form a template reads them, what
// is left of them in earlier turns, and answers whose thought is empty.

#include "core/data/chat_case.h"
#include "support/test_room.h"

#include <millrace/library.h>

namespace mr::test::tst_chat_thoughts {

namespace {

Json answer(const std::string& text, const std::string& thought)
{
    Json out = message("assistant", text);
    out["reasoning_content"] = thought;
    return out;
}

const Json kAsked = message("user", "a");
const Json kAskedAgain = message("user", "c");

// Writes questions and answers as `answer` says; `asks` ends the prompt.
std::string turns(const std::string& answer, const std::string& asks)
{
    return "{% for m in messages %}{% if m.role == 'user' %}{{ '<|im_start|>user\\n' + m.content + "
           "'<|im_end|>\\n' }}{% else %}{% set thought = m.reasoning_content | default('') %}"
           "{{ '<|im_start|>assistant\\n' }}" +
           answer + "{{ '<|im_end|>\\n' }}{% endif %}{% endfor %}{% if add_generation_prompt %}" +
           "{{ '<|im_start|>assistant\\n' }}" + asks + "{% endif %}";
}

const std::string kAlways = "{{ '<think>\\n' + thought + '\\n</think>\\n\\n' + m.content }}";
// Asks for a thought, or for none, unless it is told.
const std::string kThinks = turns(kAlways,
    "{% if enable_thinking is defined and not enable_thinking %}{{ '<think>\\n\\n</think>\\n\\n' }}"
    "{% else %}{{ '<think>\\n' }}{% endif %}");
const std::string kDoesNotThink =
    turns(kAlways, "{% if enable_thinking is defined and enable_thinking %}{{ '<think>\\n' }}"
                   "{% else %}{{ '<think>\\n\\n</think>\\n\\n' }}{% endif %}");

// Channels, a date, and an end that only the last turn has, as gpt-oss writes them.
const std::string kChannels =
    "{{ '<|start|>system<|message|>Today: ' + strftime_now('%Y-%m-%d') + '<|end|>' }}"
    "{% for m in messages %}{% if m.role == 'user' %}"
    "{{ '<|start|>user<|message|>' + m.content + '<|end|>' }}{% else %}"
    "{% if '<|channel|>' in m.content %}{{ raise_exception('put analysis into thinking') }}"
    "{% endif %}{% if loop.last and not add_generation_prompt %}{% if 'thinking' in m %}"
    "{{ '<|start|>assistant<|channel|>analysis<|message|>' + m.thinking + '<|end|>' }}{% endif %}"
    "{{ '<|start|>assistant<|channel|>final<|message|>' + m.content + '<|return|>' }}{% else %}"
    "{{ '<|start|>assistant<|channel|>final<|message|>' + m.content + '<|end|>' }}{% endif %}"
    "{% endif %}{% endfor %}{% if add_generation_prompt %}{{ '<|start|>assistant' }}{% endif %}";

// Reads thoughts as parts of content alone.
const std::string kParts =
    "{% for m in messages %}{{ '[' + m.role + ']' }}{% if m.content is string %}{{ m.content }}"
    "{% else %}{% for p in m.content %}{{ p.text if p.type == 'text' else "
    "'[THINK]' + p.thinking + '[/THINK]' }}{% endfor %}{% endif %}"
    "{{ '</s>' if m.role == 'assistant' else '' }}{% endfor %}"
    "{{ '[assistant]' if add_generation_prompt else '' }}";

TokenCounts countsOf(const Case& chat, const std::string& rows)
{
    Result<TokenSet> set = chat.build(rows);
    if (!set.ok())
        qFatal("%s", set.status().message().c_str());
    return set.value();
}

} // namespace

class TstChatThoughts : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void tagThatThePromptOpensIsNotTrained();
    void answerThatThinksHasThePromptThatAsksForIt();
    void answerWithoutAThoughtHasThePromptThatAsksForNone();
    void earlierTurnsAreTrainedAsTheyWereWritten();
    void thoughtsAreHandedOnAsParts();
    void partsOfTheDataAreThoughts();
    void thoughtWithinTheTextComesUnderItsName();
    void thoughtThatTheTemplateReadsInTheTextStaysThere();
    void thoughtThatTheTemplateCutsOffIsRefused();
    void channelsOfEveryTurnAreTrainedAtItsTime();
    void channelsWithinTheTextAreRefused();
    void emptyThoughtsAreCounted();
    void switchThatNobodyReadsIsCounted();
    void adviceSaysTheShare();
};

void TstChatThoughts::tagThatThePromptOpensIsNotTrained()
{
    const Case chat(kThinks);
    QCOMPARE(shown(chat.build(row({kAsked, answer("b", "x")}))),
        std::string("[|im_start|]user~a[|im_end|]~[|im_start|]assistant~<think>~"
                    "{x~</think>~~b[|im_end|]}~|"));
}

void TstChatThoughts::answerThatThinksHasThePromptThatAsksForIt()
{
    const Case chat(kDoesNotThink);
    QCOMPARE(shown(chat.build(row({kAsked, answer("b", "x")}))),
        std::string("[|im_start|]user~a[|im_end|]~[|im_start|]assistant~<think>~"
                    "{x~</think>~~b[|im_end|]}~|"));
    QCOMPARE(shown(chat.build(row({kAsked, message("assistant", "b")}))),
        std::string("[|im_start|]user~a[|im_end|]~[|im_start|]assistant~<think>~~</think>~~"
                    "{b[|im_end|]}~|"));
}

// GLM 4.7 opens a thought in its prompt and closes none that it did not open.
void TstChatThoughts::answerWithoutAThoughtHasThePromptThatAsksForNone()
{
    const Case chat(turns("{{ ('<think>' + thought if thought else '') + '</think>' + m.content }}",
        "{{ '</think>' if enable_thinking is defined and not enable_thinking else '<think>' }}"));
    QCOMPARE(shown(chat.build(row({kAsked, message("assistant", "b")}))),
        std::string("[|im_start|]user~a[|im_end|]~[|im_start|]assistant~</think>{b[|im_end|]}~|"));
    QCOMPARE(shown(chat.build(row({kAsked, answer("b", "x")}))),
        std::string("[|im_start|]user~a[|im_end|]~[|im_start|]assistant~<think>"
                    "{x</think>b[|im_end|]}~|"));
}

void TstChatThoughts::earlierTurnsAreTrainedAsTheyWereWritten()
{
    const Case chat(turns("{{ ('<think>\\n' + thought + '\\n</think>\\n\\n' if loop.last and "
                          "thought else '') + m.content }}",
        ""));
    QCOMPARE(shown(chat.build(row({kAsked, answer("b", "x"), kAskedAgain, answer("d", "y")}))),
        std::string("[|im_start|]user~a[|im_end|]~[|im_start|]assistant~"
                    "{<think>~x~</think>~~b[|im_end|]}~|"
                    "[|im_start|]user~a[|im_end|]~[|im_start|]assistant~b[|im_end|]~"
                    "[|im_start|]user~c[|im_end|]~[|im_start|]assistant~"
                    "{<think>~y~</think>~~d[|im_end|]}~|"));
}

void TstChatThoughts::thoughtsAreHandedOnAsParts()
{
    const Case chat(kParts);
    QCOMPARE(shown(chat.build(row({kAsked, answer("b", "x"), kAskedAgain, answer("d", "y")}))),
        std::string("[user]a[assistant]{[THINK]x[/THINK]b[/s]}"
                    "[user]c[assistant]{[THINK]y[/THINK]d[/s]}|"));
    QCOMPARE(shown(chat.build(row({kAsked, message("assistant", "<think>x</think>\n\nb")}))),
        std::string("[user]a[assistant]{[THINK]x[/THINK]b[/s]}|"));
}

void TstChatThoughts::partsOfTheDataAreThoughts()
{
    Json parts = message("assistant", "");
    parts["content"] = Json::parse(R"([{"type": "thinking", "thinking": "x"},
        {"type": "text", "text": "b"}])");
    const std::string thinks = row({kAsked, parts});
    QCOMPARE(shown(Case(kParts).build(thinks)),
        std::string("[user]a[assistant]{[THINK]x[/THINK]b[/s]}|"));
    QVERIFY(contains(shown(Case(kThinks).build(thinks)), "<think>~{x~</think>~~b[|im_end|]}"));
    parts["content"][0]["thinking"] = Json::parse(R"([{"type": "text", "text": "x"}])");
    QVERIFY(contains(shown(Case(kThinks).build(row({kAsked, parts}))), "{x~</think>~~b"));
    parts["reasoning_content"] = "y";
    QVERIFY(contains(Case(kThinks).error(row({kAsked, parts})), "another one beside it"));
    QVERIFY(contains(Case(kChatMl).error(thinks), "drop=reasoning"));
}

// Written as it is, it would stand behind an empty one.
void TstChatThoughts::thoughtWithinTheTextComesUnderItsName()
{
    const std::string inside = row({kAsked, message("assistant", "<think>\nx\n</think>\n\nb")});
    QCOMPARE(shown(Case(kThinks).build(inside)),
        std::string("[|im_start|]user~a[|im_end|]~[|im_start|]assistant~<think>~"
                    "{x~</think>~~b[|im_end|]}~|"));
    QVERIFY(contains(shown(Case(kChannels).build(inside)),
        "{<|channel|>analysis<|message|>x<|end|><|start|>assistant<|channel|>final<|message|>b"));
    QVERIFY(contains(shown(Case(kChatMl).build(inside)), "{<think>~x~</think>~~b[|im_end|]}"));
    const std::string named = row({kAsked, message("assistant", "Write <think>x</think> so.")});
    QVERIFY(contains(shown(Case(kThinks).build(named)), "Write <think>x</think> so."));
}

void TstChatThoughts::thoughtThatTheTemplateReadsInTheTextStaysThere()
{
    const Case chat(turns("{{ m.content if '</think>' in m.content else '<think>' + thought + "
                          "'</think>' + m.content }}",
        ""));
    QVERIFY(contains(
        shown(chat.build(row({kAsked, message("assistant", "<think>\nx\n</think>\n\nb")}))),
        "{<think>~x~</think>~~b[|im_end|]}"));
    QVERIFY(contains(
        shown(chat.build(row({kAsked, answer("b", "x")}))), "{<think>x</think>b[|im_end|]}"));
}

// DeepSeek's templates do so, and the answer keeps the line feeds behind the thought.
void TstChatThoughts::thoughtThatTheTemplateCutsOffIsRefused()
{
    const Case chat(turns("{{ m.content.split('</think>')[-1] }}", ""));
    QVERIFY(contains(chat.error(row({kAsked, message("assistant", "<think>x</think>\n\nb")})),
        "drop=reasoning"));
}

void TstChatThoughts::channelsOfEveryTurnAreTrainedAtItsTime()
{
    const Case chat(kChannels);
    const std::string system = "<|start|>system<|message|>Today: 2024-07-26<|end|>";
    const std::string question = "<|start|>user<|message|>a<|end|><|start|>assistant";
    const std::string again = "<|start|>user<|message|>c<|end|><|start|>assistant";
    QCOMPARE(shown(chat.build(row({kAsked, answer("b", "x"), kAskedAgain, answer("d", "y")}))),
        system + question +
            "{<|channel|>analysis<|message|>x<|end|>"
            "<|start|>assistant<|channel|>final<|message|>b<|return|>}|" +
            system + question + "<|channel|>final<|message|>b<|end|>" + again +
            "{<|channel|>analysis<|message|>y<|end|>"
            "<|start|>assistant<|channel|>final<|message|>d<|return|>}|");
}

void TstChatThoughts::channelsWithinTheTextAreRefused()
{
    const std::string error =
        Case(kChannels).error(row({kAsked, message("assistant", "<|channel|>final<|message|>b")}));
    QVERIFY(contains(error, "line 1"));
    QVERIFY(contains(error, "put analysis into thinking"));
}

void TstChatThoughts::emptyThoughtsAreCounted()
{
    const std::string rows =
        row({kAsked, answer("b", "x"), kAskedAgain, message("assistant", "d")}) +
        row({kAsked, message("assistant", "b")});
    const TokenCounts thinks = countsOf(Case(kThinks), rows);
    QCOMPARE(thinks.answers, 3U);
    QCOMPARE(thinks.emptyThoughts, 2U);
    const TokenCounts asked = countsOf(Case(kDoesNotThink), rows); // the prompt writes them
    QCOMPARE(asked.answers, 3U);
    QCOMPARE(asked.emptyThoughts, 0U);
    QCOMPARE(countsOf(Case(kChatMl), row({kAsked, message("assistant", "<think>\n\n</think>b")}))
                 .emptyThoughts,
        1U);
    const TokenCounts channels = countsOf(Case(kChannels), row({kAsked, answer("b", "")}));
    QCOMPARE(channels.emptyThoughts, 1U);
    QCOMPARE(countsOf(Case(kParts), rows.substr(0, rows.find('\n'))).emptyThoughts, 0U);
}

void TstChatThoughts::switchThatNobodyReadsIsCounted()
{
    const std::string rows = row({message("user", "a /no_think"), message("assistant", "b")}) +
                             row({kAsked, message("assistant", "b")});
    const auto unread = [&](const std::string& source, const char* config) {
        const Case chat(source);
        if (*config != '\0')
            chat.folder.write("config.json", config);
        return countsOf(chat, rows).unreadSwitches;
    };
    QCOMPARE(unread(kChatMl, R"({"model_type": "qwen3_5_text"})"), 1U);
    QCOMPARE(unread(kChatMl, R"({"model_type": "qwen3"})"), 0U); // learned it without its template
    QCOMPARE(unread(kChatMl, ""), 0U);                           // may have
    const std::string reads =
        std::string("{% if '/no_think' in messages[0].content %}off{% endif %}") + kChatMl;
    QCOMPARE(unread(reads, R"({"model_type": "smollm3"})"), 0U);
}

void TstChatThoughts::adviceSaysTheShare()
{
    QVERIFY(thoughtAdvice(0, 10).empty());
    QVERIFY(contains(thoughtAdvice(41, 100), "41 % of the answers (41 of 100) have an empty"));
    DataReport report;
    report.notes = {"files disagree"};
    report.answers = 4;
    report.emptyThoughts = 1;
    report.unreadSwitches = 7;
    const std::vector<std::string> advice = dataAdvice(report);
    QCOMPARE(advice.size(), std::size_t{3});
    QCOMPARE(advice[0], std::string("files disagree"));
    QVERIFY(contains(advice[1], "25 %"));
    QVERIFY(contains(advice[2], "7 rows hold /no_think"));
}

MR_TEST(TstChatThoughts)

} // namespace mr::test::tst_chat_thoughts

#include "tst_chat_thoughts.moc"
