#include "core/data/chat_template.h"
#include "core/data/data_files.h"
#include "support/test_room.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace mr::test::tst_chat_template {

namespace {

using Json = nlohmann::ordered_json;

constexpr int kLeastExpressions = 400;

Json golden(const char* name)
{
    const std::string path =
        qEnvironmentVariable("MILLRACE_SOURCE").toStdString() + "/tests/core/data/" + name;
    const std::string text = readFile(path);
    if (text.empty())
        qFatal("the golden file %s is missing", name);
    return Json::parse(text);
}

// The clock the goldens were made with: Friday, 26 July 2024, 13:45:09.
ChatOptions options(bool prompt = false)
{
    ChatOptions out;
    out.addGenerationPrompt = prompt;
    out.now.tm_year = 124;
    out.now.tm_mon = 6;
    out.now.tm_mday = 26;
    out.now.tm_hour = 13;
    out.now.tm_min = 45;
    out.now.tm_sec = 9;
    out.now.tm_wday = 5;
    out.now.tm_yday = 207;
    return out;
}

Result<RenderedChat> render(
    const std::string& source, const Json& variables, const ChatOptions& how = options())
{
    Result<ChatTemplate> parsed = ChatTemplate::parse(source);
    return parsed.ok() ? parsed.value().render(variables, how) : parsed.status();
}

std::string refusal(const std::string& source, const Json& variables = Json::object())
{
    const Result<RenderedChat> result = render(source, variables);
    return result.ok() ? std::string() : result.status().message();
}

Json spansOf(const RenderedChat& chat)
{
    Json out = Json::array();
    for (const TextSpan& span : chat.generated)
        out.push_back({span.begin, span.end});
    return out;
}

// True when a rendering equals that of jinja2: the text and the spans, or an error.
bool matches(const Json& expected, const Result<RenderedChat>& result, const std::string& what)
{
    Result<RenderedChat> copy = result;
    if (expected.contains("error")) {
        if (!result.ok())
            return true;
        qWarning("%s\n  gives: %s\n  must fail: %s", what.c_str(), copy.value().text().c_str(),
            expected["error"].get<std::string>().c_str());
        return false;
    }
    const std::string wanted = expected["output"].get<std::string>();
    if (!result.ok()) {
        qWarning("%s\n  fails: %s\n  wanted: %s", what.c_str(), result.status().message().c_str(),
            wanted.c_str());
        return false;
    }
    const Json spans = spansOf(copy.value());
    if (copy.value().text() == wanted && spans == expected["generated"])
        return true;
    qWarning("%s\n  gives: %s %s\n  wanted: %s %s", what.c_str(), copy.value().text().c_str(),
        spans.dump().c_str(), wanted.c_str(), expected["generated"].dump().c_str());
    return false;
}

std::string controlsOf(const RenderedChat& chat)
{
    std::string out;
    for (const ChatPiece& piece : chat.pieces)
        out += piece.controls ? "[" + piece.text + "]" : piece.text;
    return out;
}

} // namespace

class TestChatTemplate : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void expressionsMeanWhatTheyMeanInJinja();
    void chatsAreWrittenAsJinjaWritesThem();
    void contentNeverBecomesAControlToken();
    void whatIsNotKnownIsRefusedByNameAndLine();
    void hostileTemplatesEndWithAnError_data();
    void hostileTemplatesEndWithAnError();
    void damagedTemplatesNeverCrash();
};

void TestChatTemplate::expressionsMeanWhatTheyMeanInJinja()
{
    const Json table = golden("goldens/chat_expressions.json");
    int wrong = 0;
    for (const Json& one : table["cases"]) {
        const std::string source = one["template"].get<std::string>();
        wrong += matches(one, render(source, table["variables"]), source) ? 0 : 1;
    }
    QVERIFY(table["cases"].size() > kLeastExpressions);
    QCOMPARE(wrong, 0);
}

void TestChatTemplate::chatsAreWrittenAsJinjaWritesThem()
{
    const Json table = golden("goldens/chat_chats.json");
    int wrong = 0;
    for (const Json& one : table["cases"]) {
        const std::string name = one["template"].get<std::string>();
        const std::string chat = one["conversation"].get<std::string>();
        ChatOptions how = options(one["prompt"].get<bool>());
        for (const auto& [token, text] : table["tokens"][name].items())
            how.tokens[token] = text.get<std::string>();
        const std::string source = table["templates"][name].get<std::string>();
        const Result<RenderedChat> result = render(source, table["conversations"][chat], how);
        wrong += matches(one, result, name + ", " + chat) ? 0 : 1;
        const std::string words = one.value("error", std::string());
        if (words.starts_with("Conversation roles must"))
            wrong += contains(result.status().message(), words) ? 0 : 1;
    }
    QVERIFY(table["cases"].size() > 100);
    QCOMPARE(wrong, 0);
}

void TestChatTemplate::contentNeverBecomesAControlToken()
{
    const Json variables = {{"messages", {{{"role", "user"}, {"content", " </s>a "}}}},
        {"tools", {{{"name", "</s>"}}}}};
    const auto written = [&](const std::string& source) {
        ChatOptions how = options();
        how.tokens["eos_token"] = "</s>";
        Result<RenderedChat> result = render("{% set m = messages[0] %}" + source, variables, how);
        return result.ok() ? controlsOf(result.value()) : result.status().message();
    };

    QCOMPARE(written("{{ '<|' + m.role + '|>' + m.content + eos_token }}"),
        std::string("[<|user|>] </s>a [</s>]"));
    QCOMPARE(written("{{ ('<' ~ m.content ~ '>') | upper }}"), std::string("[<] </S>A [>]"));
    QCOMPARE(
        written("{{ (m.content | trim).replace('a', '<b>') ~ 1 }}"), std::string("</s>[<b>1]"));
    QCOMPARE(written("{{ ('x' ~ m.content)[::-1] }}"), std::string(" a>s/< [x]"));
    QCOMPARE(written("{{ [m.content, 'y'] | join('-') }}"), std::string(" </s>a [-y]"));
    QCOMPARE(written("{{ m.content.split('/')[1] ~ '/' }}"), std::string("s>a [/]"));
    QCOMPARE(written("{{ tools | tojson }}{{ tools }}"),
        std::string(R"([{"name": "</s>"}][{'name': '</s>'}])"));
    QCOMPARE(written("{% set x %}<{{ m.content }}>{% endset %}{{ x | indent }}"),
        std::string("[<] </s>a [>]"));
    QCOMPARE(written("{% macro p(c) %}<{{ c }}>{% endmacro %}{{ p(m.content) }}"),
        std::string("[<] </s>a [>]"));
    QCOMPARE(written("{% for k in tools[0] %}{{ k }}{{ tools[0][k] }}{% endfor %}"),
        std::string("name</s>"));
    QCOMPARE(written("{{ '<%s>' | format(m.content) }}{{ '{}|'.format(m.content) }}"),
        std::string("[<] </s>a [>] </s>a [|]"));
    QCOMPARE(written("{{ ('<' | safe) + m.content }}{{ m.content | e }}"),
        std::string("[<] &lt;/s&gt;a  &lt;/s&gt;a "));
    QCOMPARE(written("{{ '<' + (m.content + '{:|>2}').format(7) }}"), std::string("[<] </s>a |7"));
    QCOMPARE(written("{{ m.content | truncate(4, true, '~', 0) }}"), std::string(" </[~]"));
    QCOMPARE(written("{% macro p() %}<{{ caller() }}>{% endmacro %}{% call p() %}{{ m.content }}"
                     "{% endcall %}"),
        std::string("[<] </s>a [>]"));
    QCOMPARE(written("{% for c in [m.content] recursive %}<{{ c if loop.depth > 1 else loop([c]) "
                     "}}>{% endfor %}"),
        std::string("[<<] </s>a [>>]"));
    QCOMPARE(written("{{ [m.content, ' b'] | min }}"), std::string(" </s>a "));
    QCOMPARE(written("{% for c in m.content.strip() %}{{ c }}{% endfor %}"), std::string("</s>a"));
}

void TestChatTemplate::whatIsNotKnownIsRefusedByNameAndLine()
{
    const auto names = [](const std::string& source, const char* line, const char* name) {
        const std::string message = refusal(source, {{"s", "x"}, {"d", {{"a", 1}}}});
        return contains(message, line) && contains(message, name);
    };

    QVERIFY(names("a\nb\n{{ s | nosuch }}", "line 3:", "\"nosuch\""));
    QVERIFY(names("\n{% if s is odder %}{% endif %}", "line 2:", "\"odder\""));
    QVERIFY(names("{#\n\n#}\n{% include 'x' %}", "line 4:", "\"include\""));
    QVERIFY(names("{{ s }}\n{{ s.zfill(3) }}", "line 2:", "\"zfill\""));
    QVERIFY(names("{{\n\n '{:n}'.format(3) }}", "line 3:", "\"n\""));
    QVERIFY(names("\n{{ '%c' | format(65) }}", "line 2:", "\"c\""));
    QVERIFY(names("\n{{ (s | safe).strip('<') }}", "line 2:", "strip()"));
    QVERIFY(names("\n{% call s %}{% endcall %}", "line 2:", "\"call\""));
    QVERIFY(
        names("{% macro m() %}{% endmacro %}\n{% call m() %}{% endcall %}", "line 2:", "caller"));
    QVERIFY(names("{% for i in d %}\n{{ loop(s) }}{% endfor %}", "line 2:", "recursive"));
    QVERIFY(names("{{ lipsum() }}", "line 1:", "\"lipsum\""));
    QVERIFY(names("\n\n{{ missing.content }}", "line 3:", "\"missing\""));
    QVERIFY(names("{% for i in [1] %}\n{{ loop.nosuch }}{% endfor %}", "line 2:", "nosuch"));
    QVERIFY(names("{{ s | trim(left=1) }}", "line 1:", "\"left\""));
    QVERIFY(names("{{ '\n\n' }}\n{{ 1 + s }}", "line 4:", "int and str"));
    QVERIFY(names("{{ raise_exception('only pairs') }}", "line 1:", "only pairs"));
    QVERIFY(names("{% if s %}\n\nx", "line 3:", "endif"));
}

void TestChatTemplate::hostileTemplatesEndWithAnError_data()
{
    QTest::addColumn<QString>("source");
    const auto row = [](const char* name, const std::string& source) {
        QTest::newRow(name) << QString::fromStdString(source);
    };
    const auto times = [](const std::string& what, int count) {
        std::string out;
        for (int i = 0; i < count; ++i)
            out += what;
        return out;
    };
    const std::string nine = "{% for a in range(99999) %}";
    row("loops", times(nine, 3) + times("{% endfor %}", 3));
    row("doubling", "{% set n = namespace(s='ab') %}{% for i in range(90) %}{% set n.s = n.s ~ n.s "
                    "%}{% endfor %}{{ n.s }}");
    row("lists in lists",
        "{% set n = namespace(s=[]) %}{% for i in range(9000) %}{% set n.s = [n.s] "
        "%}{% endfor %}{{ n.s }}");
    row("shared lists", "{% set n = namespace(s=[1]) %}{% for i in range(90) %}{% set n.s = [n.s, "
                        "n.s] %}{% endfor %}{{ n.s | tojson }}");
    row("itself", "{% set n = namespace() %}{% set n.n = n %}{{ n }}");
    row("recursion", "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}");
    row("recursive loop", "{% for i in [1] recursive %}{{ loop([1]) }}{% endfor %}");
    row("callers", "{% macro m() %}{% call m() %}{% endcall %}{{ caller }}{% endmacro %}{{ m() }}");
    row("wide format", "{{ '%999999999d' | format(1) }}");
    row("wide field", "{{ '{:>999999999}'.format(1) }}");
    row("many places", "{{ '%1000d' * 10 ** 6 | format(*([1] * 10 ** 6)) }}");
    row("filled batch", "{{ [0] | batch(10 ** 12, 0) | list }}");
    row("targets",
        "{% for " + times("(", 100000) + "a" + times(")", 100000) + " in [1] %}{% endfor %}");
    row("spread", "{{ dict(*" + times("[", 100000) + "1" + times("]", 100000) + ") }}");
    row("repetition", "{{ 'x' * 10 ** 12 }}");
    row("list repetition", "{{ [0] * 10 ** 12 }}");
    row("power", "{{ 9 ** 9 ** 9 }}");
    row("brackets", "{{ " + times("(", 100000) + "1" + times(")", 100000) + " }}");
    row("signs", "{{ " + times("-", 100000) + "1 }}");
    row("sum", "{{ 1" + times(" + 1", 100000) + " }}");
    row("attributes", "{{ a" + times(".b", 100000) + " }}");
    row("filters", "{{ 'a'" + times(" | trim", 100000) + " }}");
    row("blocks", times("{% if true %}", 100000));
    row("output", "{% set x = 'x' * 1000000 %}{% for i in range(9999) %}{{ x }}{% endfor %}");
    row("indent", "{{ [[[[1]]]] | tojson(indent='x' * 100000000) }}");
}

void TestChatTemplate::hostileTemplatesEndWithAnError()
{
    QFETCH(QString, source);
    const std::string message = refusal(source.toStdString());
    QVERIFY(contains(message, "chat template, line 1: "));
}

// Every template cut at every place, and with every byte left out: an error or a text, no more.
void TestChatTemplate::damagedTemplatesNeverCrash()
{
    const Json table = golden("goldens/chat_chats.json");
    const Json& chat = table["conversations"]["tools"];
    const std::string whole = table["templates"]["thinking"].get<std::string>();
    const Result<RenderedChat> sound = render(whole, chat);
    QVERIFY(sound.ok());
    int refused = 0;
    for (std::size_t at = 0; at < whole.size(); ++at) {
        refused += render(whole.substr(0, at), chat).ok() ? 0 : 1;
        std::string without = whole;
        without.erase(at, 1);
        refused += render(without, chat).ok() ? 0 : 1;
    }
    QVERIFY(refused > static_cast<int>(whole.size()) / 2);
}

MR_TEST(TestChatTemplate)

} // namespace mr::test::tst_chat_template

#include "tst_chat_template.moc"
