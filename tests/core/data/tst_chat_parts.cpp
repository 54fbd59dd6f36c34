// Parts of conversations that a chat template leaves out.

#include "core/data/chat_case.h"
#include "core/data/chat_parts.h"
#include "support/test_room.h"

namespace mr::test::tst_chat_parts {

namespace {

// Writes everything: system texts, tools, calls, results, reasoning.
const std::string kAll =
    "{% if tools %}T{{ tools | tojson }}{% endif %}{% for m in messages %}{{ m.role }}:"
    "{% if m.reasoning_content %}({{ m.reasoning_content }}){% endif %}{{ m.content }}"
    "{% for c in m.tool_calls or [] %}{{ c.function.name }}{{ c.function.arguments | tojson }}"
    "{% endfor %}</s>{% endfor %}{% if add_generation_prompt %}assistant:{% endif %}";

Json callOf(const char* tool)
{
    return {{"role", "assistant"}, {"content", nullptr},
        {"tool_calls", {{{"type", "function"},
                           {"function", {{"name", tool}, {"arguments", R"({"x": 1})"}}}}}}};
}

const Json kCalls = {{"messages", {message("user", "q"), callOf("f"), message("tool", "1"),
                                      message("assistant", "one")}},
    {"tools", {{{"type", "function"}, {"function", {{"name", "f"}}}}}}};

std::string lines(const Json& row, int times = 1)
{
    std::string out;
    for (int i = 0; i < times; ++i)
        out += row.dump() + "\n";
    return out;
}

Result<TokenSet> dropping(const Case& chat, const std::string& parts, const std::string& jsonl)
{
    DataSource source{chat.folder.write("chat.jsonl", jsonl), DataFormat::Auto, {}};
    source.columns["drop"] = parts;
    return buildTokenSet({source}, ByteTokenizer(), chat.options);
}

} // namespace

class TstChatParts : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void callsThatTheTemplateLeavesOutAreRefused();
    void aTextBesideACallThatIsLeftOutIsRefused();
    void templatesThatWriteThemAreBelieved();
    void partsAreDroppedWhereAsked();
    void reasoningThatIsLeftOutIsRefused();
    void thoughtsInTheTextCountAsReasoning();
    void oldThoughtsMayBeLeftOut();
    void aLateSystemTextIsTakenWhereItIsWritten();
    void aRefusedPartCanBeDropped();
    void anAnswerMayComeFirstWhereTheTemplateTakesIt();
    void unknownPartsAreRefused();
    void argumentsAreWrittenAsTheTemplateReadsThem();
};

void TstChatParts::callsThatTheTemplateLeavesOutAreRefused()
{
    const Case chat(kChatMl);
    const std::string error =
        chat.error(row({message("user", "a"), message("assistant", "b")}) + lines(kCalls, 2));
    QVERIFY(contains(error, "chat.jsonl, line 2: the chat template does not write"));
    QVERIFY(contains(error, "lists of tools (2 of 3 rows)"));
    QVERIFY(contains(error, "calls of tools, their results or texts beside them (2 of 3 rows)"));
    QVERIFY(contains(error, "--map drop=tools+tool-calls"));
}

// As those of Llama 3.1 do.
void TstChatParts::aTextBesideACallThatIsLeftOutIsRefused()
{
    const Case chat("{% for m in messages %}{{ m.role }}:{% if m.tool_calls %}"
                    "{{ m.tool_calls[0].function | tojson }}{% else %}{{ m.content }}{% endif %}"
                    "</s>{% endfor %}{% if add_generation_prompt %}assistant:{% endif %}");
    Json both = callOf("f");
    QCOMPARE(shown(chat.build(row({message("user", "a"), both}))),
        std::string("user:a[/s]assistant:{{\"name\": \"f\", \"arguments\": {\"x\": 1}}[/s]}|"));
    both["content"] = "b";
    QVERIFY(contains(chat.error(row({message("user", "a"), both})), "texts beside them (1 of 1"));
}

void TstChatParts::templatesThatWriteThemAreBelieved()
{
    const Case chat(kAll);
    QCOMPARE(shown(chat.build(lines(kCalls))),
        std::string(R"(T[{"type": "function", "function": {"name": "f"}}]user:q[/s]assistant:)"
                    R"({f{"x": 1}[/s]}tool:1[/s]assistant:{one[/s]}|)"));
}

void TstChatParts::partsAreDroppedWhereAsked()
{
    const Case chat(kChatMl);
    QCOMPARE(shown(dropping(chat, "tools+tool-calls", lines(kCalls))),
        std::string("[|im_start|]user~q[|im_end|]~[|im_start|]assistant~{one[|im_end|]}~|"));
    const std::string half = shown(dropping(chat, "tools", lines(kCalls)));
    QVERIFY(contains(half, "--map drop=tool-calls"));
    Json weighted = kCalls; // the places of answers that are not trained move along
    weighted["messages"].push_back(message("user", "r"));
    weighted["messages"].push_back(message("assistant", "s"));
    weighted["messages"][3]["weight"] = 0;
    QCOMPARE(shown(dropping(chat, "tools+tool-calls", lines(weighted))),
        std::string("[|im_start|]user~q[|im_end|]~[|im_start|]assistant~one[|im_end|]~"
                    "[|im_start|]user~r[|im_end|]~[|im_start|]assistant~{s[|im_end|]}~|"));
    const Json system = {{"messages",
        {message("system", "instructions"), message("user", "q"), message("assistant", "a")}}};
    QVERIFY(!contains(shown(dropping(chat, "system", lines(system))), "instructions"));
}

void TstChatParts::reasoningThatIsLeftOutIsRefused()
{
    const Case chat(kChatMl);
    Json answer = message("assistant", "b");
    answer["thinking"] = "because";
    const std::string text = row({message("user", "a"), answer});
    QVERIFY(contains(chat.error(text), "reasoning of the assistant (1 of 1 rows)"));
    QCOMPARE(shown(dropping(chat, "reasoning", text)),
        std::string("[|im_start|]user~a[|im_end|]~[|im_start|]assistant~{b[|im_end|]}~|"));
    const Case all(kAll);
    QCOMPARE(shown(all.build(text)), std::string("user:a[/s]assistant:{(because)b[/s]}|"));
}

// As the distilled models of DeepSeek do.
void TstChatParts::thoughtsInTheTextCountAsReasoning()
{
    const Case chat("{% for m in messages %}{{ m.role }}:{{ m.content.split('</think>')[-1] }}</s>"
                    "{% endfor %}{% if add_generation_prompt %}assistant:<think>\n{% endif %}");
    const std::string text =
        row({message("user", "a"), message("assistant", "<think>because</think>b")});
    QVERIFY(contains(chat.error(text), "reasoning of the assistant (1 of 1 rows)"));
    QCOMPARE(shown(dropping(chat, "reasoning", text)), std::string("user:a[/s]assistant:{b[/s]}|"));
}

void TstChatParts::oldThoughtsMayBeLeftOut()
{
    const Case chat("{% for m in messages %}{{ m.role }}:"
                    "{% if loop.last and m.reasoning_content %}{{ m.reasoning_content }}/{% endif "
                    "%}{{ m.content }}</s>"
                    "{% endfor %}{% if add_generation_prompt %}assistant:{% endif %}");
    Json first = message("assistant", "b");
    Json second = message("assistant", "d");
    first["reasoning"] = "x";
    second["reasoning"] = "y";
    QCOMPARE(shown(chat.build(row({message("user", "a"), first, message("user", "c"), second}))),
        std::string("user:a[/s]assistant:{x/b[/s]}|"
                    "user:a[/s]assistant:b[/s]user:c[/s]assistant:{y/d[/s]}|"));
}

void TstChatParts::aLateSystemTextIsTakenWhereItIsWritten()
{
    const std::string late = row({message("user", "a"), message("assistant", "b"),
        message("system", "now"), message("user", "c"), message("assistant", "d")});
    const Case chat(kChatMl);
    QCOMPARE(shown(chat.build(late)),
        std::string("[|im_start|]user~a[|im_end|]~[|im_start|]assistant~{b[|im_end|]}~"
                    "[|im_start|]system~now[|im_end|]~"
                    "[|im_start|]user~c[|im_end|]~[|im_start|]assistant~{d[|im_end|]}~|"));
    const Case deaf("{% for m in messages if m.role != 'system' %}{{ m.role }}:{{ m.content }}</s>"
                    "{% endfor %}{% if add_generation_prompt %}assistant:{% endif %}");
    QVERIFY(contains(deaf.error(late), "system texts (1 of 1 rows)"));
}

void TstChatParts::aRefusedPartCanBeDropped()
{
    const Case chat("{% for m in messages %}{% if m.role == 'system' %}"
                    "{{ raise_exception('no system') }}{% endif %}{{ m.role }}:{{ m.content }}</s>"
                    "{% endfor %}{% if add_generation_prompt %}assistant:{% endif %}");
    const std::string text =
        row({message("system", "s"), message("user", "a"), message("assistant", "b")});
    QVERIFY(contains(chat.error(text), "--map drop=system"));
    QCOMPARE(shown(dropping(chat, "system", text)), std::string("user:a[/s]assistant:{b[/s]}|"));
}

void TstChatParts::anAnswerMayComeFirstWhereTheTemplateTakesIt()
{
    const std::string first =
        row({message("assistant", "hi"), message("user", "a"), message("assistant", "b")});
    const Case chat(kChatMl);
    QCOMPARE(shown(chat.build(first)),
        std::string("[|im_start|]assistant~{hi[|im_end|]}~"
                    "[|im_start|]user~a[|im_end|]~[|im_start|]assistant~{b[|im_end|]}~|"));
    // A template that looks at the first message cannot write a prompt before it.
    const Case looks(std::string("{% if messages[0].role != 'system' %}S:{% endif %}") + kChatMl);
    QCOMPARE(shown(looks.build(first)),
        std::string("S:[|im_start|]assistant~{hi[|im_end|]}~"
                    "[|im_start|]user~a[|im_end|]~[|im_start|]assistant~{b[|im_end|]}~|"));
    // A template that asks for nothing writes its own word before the answer all the same.
    const Case unasked("{% for m in messages %}{{ m.role }}:{{ m.content }}</s>{% endfor %}");
    QVERIFY(shown(unasked.build(first)).starts_with("assistant:{hi[/s]}"));
    const Case strict(std::string("{% if messages[0].role != 'user' %}"
                                  "{{ raise_exception('the user begins') }}{% endif %}") +
                      kChatMl);
    QVERIFY(contains(strict.error(first), "the user begins"));
}

void TstChatParts::unknownPartsAreRefused()
{
    const Case chat(kChatMl);
    const std::string error = shown(dropping(chat, "tools+sytem", lines(kCalls)));
    QVERIFY(contains(error, "--map drop=\"sytem\" is not known"));
    QVERIFY(contains(error, "system, tools, tool-calls or reasoning"));
}

// DeepSeek's templates add the arguments to a text.
void TstChatParts::argumentsAreWrittenAsTheTemplateReadsThem()
{
    const Case chat(
        "{% for m in messages %}{{ m.role }}:{{ m.content }}"
        "{% for c in m.tool_calls or [] %}{{ c.function.name + c.function.arguments }}"
        "{% endfor %}</s>{% endfor %}{% if add_generation_prompt %}assistant:{% endif %}");
    QCOMPARE(shown(dropping(chat, "tools", lines(kCalls))),
        std::string("user:q[/s]assistant:{f{\"x\": 1}[/s]}tool:1[/s]assistant:{one[/s]}|"));
}

MR_TEST(TstChatParts)

} // namespace mr::test::tst_chat_parts

#include "tst_chat_parts.moc"
