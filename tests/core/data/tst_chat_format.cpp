#include "core/data/chat_case.h"
#include "core/data/chat_format.h"
#include "core/data/chat_templates.h"
#include "core/data/conversation.h"
#include "support/test_room.h"

namespace mr::test::tst_chat_format {

namespace {

const std::string kTwoTurns = row({message("user", "a"), message("assistant", "b"),
    message("user", "c"), message("assistant", "d")});

std::string published(const char* name)
{
    return readFile(qEnvironmentVariable("MILLRACE_SOURCE").toStdString() +
                    "/tests/reference/templates/chat_templates/" + name);
}

} // namespace

class TstChatFormat : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void answersAndTheirEndTokensAreTrained();
    void bothFormsOfAConversationReadAlike();
    void controlTokensInContentStayText();
    void aTemplateThatMarksItsTurnsIsBelieved();
    void turnsThatChangeWithTheNextAreSequencesOfTheirOwn();
    void anEndOfTextBehindTheLastTurnIsTrained();
    void theBosOfTheTemplateIsTheOnlyOne();
    void badConversationsNameFileLineAndMessage();
    void aModelWithoutTemplateSaysWhatToDo();
    void cutAndEmptyRowsAreCounted();
    void everyPlaceOfATemplateIsRead();
    void realChatsAreRead();
    void aModelIsTaughtATemplateItHasNot();
    void aTaughtAnswerEndsWithATokenTheModelHas();
    void aTemplateOfOnesOwnIsTaught();
    void aTaughtTemplateWritesCallsAndReasoning();
};

void TstChatFormat::answersAndTheirEndTokensAreTrained()
{
    const Case chat(kChatMl);
    QCOMPARE(shown(chat.build(kTwoTurns)),
        std::string("[|im_start|]user~a[|im_end|]~[|im_start|]assistant~{b[|im_end|]}~"
                    "[|im_start|]user~c[|im_end|]~[|im_start|]assistant~{d[|im_end|]}~|"));
}

void TstChatFormat::bothFormsOfAConversationReadAlike()
{
    const Case chat(kChatMl);
    const std::string plain =
        row({message("system", "s"), message("user", "a"), message("assistant", "b")});
    const std::string wanted = shown(chat.build(plain));
    QVERIFY(contains(wanted, "system~s[|im_end|]"));
    QCOMPARE(shown(chat.build(R"({"conversations":[{"from":"system","value":"s"},)"
                              R"({"from":"human","value":"a"},{"from":"gpt","value":"b"}]})")),
        wanted);
    QCOMPARE(shown(chat.build(R"({"system":"s","conversations":[{"from":"human","value":"a"},)"
                              R"({"from":"gpt","value":"b"}]})")),
        wanted);
    QCOMPARE(shown(chat.build(R"({"messages":[{"role":"system","content":"s"},{"role":"user",)"
                              R"("content":[{"type":"text","text":"a"}]},)"
                              R"({"role":"assistant","content":"b"}]})")),
        wanted);
}

void TstChatFormat::controlTokensInContentStayText()
{
    const Case chat(kChatMl);
    const std::string out =
        shown(chat.build(row({message("user", "<|im_end|>"), message("assistant", "</s>")})));
    QCOMPARE(out, std::string("[|im_start|]user~<|im_end|>[|im_end|]~"
                              "[|im_start|]assistant~{</s>[|im_end|]}~|"));
}

void TstChatFormat::aTemplateThatMarksItsTurnsIsBelieved()
{
    const Case chat(published("marked.jinja"));
    QCOMPARE(shown(chat.build(kTwoTurns)),
        std::string("[|im_start|]user~a[|im_end|]~[|im_start|]assistant~{b[|im_end|]}~"
                    "[|im_start|]user~c[|im_end|]~[|im_start|]assistant~{d[|im_end|]}~|"));
}

void TstChatFormat::turnsThatChangeWithTheNextAreSequencesOfTheirOwn()
{
    const Case chat(
        "{% for m in messages %}{{ '<|im_start|>' + m.role + '\\n' + (m.content if loop.last "
        "else m.content.split('</think>')[-1]) + '<|im_end|>' }}{% endfor %}"
        "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}");
    const std::string thinks = "<think>x</think>b";
    const std::string two = row({message("user", "a"), message("assistant", thinks),
        message("user", "c"), message("assistant", "d")});
    QCOMPARE(shown(chat.build(two)),
        std::string("[|im_start|]user~a[|im_end|][|im_start|]assistant~"
                    "{<think>x</think>b[|im_end|]}|"
                    "[|im_start|]user~a[|im_end|][|im_start|]assistant~b[|im_end|]"
                    "[|im_start|]user~c[|im_end|][|im_start|]assistant~{d[|im_end|]}|"));
    const Case other(published("thinking.jinja")); // writes such a turn under another header
    QVERIFY(contains(other.error(two), "message 2 without the prompt that asks for it"));
}

void TstChatFormat::anEndOfTextBehindTheLastTurnIsTrained()
{
    const Case chat("{% for m in messages %}{{ '<|' + m.role + '|>' + m.content + '<|end|>' }}"
                    "{% endfor %}{% if add_generation_prompt %}{{ '<|assistant|>' }}"
                    "{% else %}{{ eos_token }}{% endif %}");
    QCOMPARE(shown(chat.build(kTwoTurns)),
        std::string("<|user|>a<|end|><|assistant|>{b<|end|>}<|user|>c<|end|><|assistant|>"
                    "{d<|end|>[/s]}|"));
}

void TstChatFormat::theBosOfTheTemplateIsTheOnlyOne()
{
    const Case with(std::string("{{ bos_token }}") + kChatMl);
    QVERIFY(shown(with.build(kTwoTurns)).starts_with("[s][|im_start|]user"));
    const Case instructions(published("instructions.jinja"));
    QCOMPARE(shown(instructions.build(kTwoTurns)),
        std::string("[s][INST] a[/INST]{ b[/s]}[INST] c[/INST]{ d[/s]}|"));
}

void TstChatFormat::badConversationsNameFileLineAndMessage()
{
    const Case chat(kChatMl);
    const auto says = [&](const std::string& bad, const char* what) {
        const std::string error = chat.error(kTwoTurns + bad);
        return contains(error, "chat.jsonl, line 2: ") && contains(error, what);
    };

    QVERIFY(says(row({message("user", "a"), message("narrator", "b")}), "\"narrator\""));
    QVERIFY(says(row({message("user", "a"), {{"role", "assistant"}}}), "no \"content\""));
    QVERIFY(says(row({message("user", "a"), {{"role", "assistant"}, {"content", 5}}}), "not text"));
    QVERIFY(says(R"({"messages":"x"})", "not a list"));
    QVERIFY(says(R"({"other":1})", "not a list"));
    const Case strict(
        "{% for m in messages %}{{ raise_exception('not this one') if m.content == 'z' "
        "else m.content }}{% endfor %}");
    QVERIFY(contains(strict.error(row({message("user", "z"), message("assistant", "b")})),
        "chat.jsonl, line 1: chat template, line 1: the template refuses the conversation: not "
        "this"));
}

void TstChatFormat::aModelWithoutTemplateSaysWhatToDo()
{
    Case chat("");
    chat.folder.write("tokenizer_config.json", R"({"bos_token":"<s>"})");
    const std::string error = chat.error(kTwoTurns);
    QVERIFY(contains(error, "has no chat template"));
    QVERIFY(contains(error, "chat_template.jinja"));
    QVERIFY(contains(error, "\"prompt\" and \"response\""));
}

namespace {

// Tells its control tokens by the names that it reads, as real ones do.
class NamedTokenizer final : public ByteTokenizer
{
public:
    std::string piece(TokenId id) const override
    {
        return id < 256 ? ByteTokenizer::piece(id)
                        : std::string(kControls.at(static_cast<std::size_t>(id) - 256));
    }
};

Result<TokenSet> taught(const Case& chat, const std::string& choice, const std::string& jsonl)
{
    DataSource source{chat.folder.write("chat.jsonl", jsonl), DataFormat::Auto, {}};
    source.columns["chat_template"] = choice;
    return buildTokenSet({source}, NamedTokenizer(), chat.options);
}

struct Untaught : Case {
    Untaught()
        : Case("")
    {
        folder.write("tokenizer_config.json", R"({"bos_token":"<s>"})");
    }
};

} // namespace

void TstChatFormat::aModelIsTaughtATemplateItHasNot()
{
    const Untaught chat;
    QCOMPARE(shown(taught(chat, "chatml", kTwoTurns)),
        std::string("[s][|im_start|]user~a[|im_end|]~[|im_start|]assistant~{b[|im_end|]}~"
                    "[|im_start|]user~c[|im_end|]~[|im_start|]assistant~{d[|im_end|]}~|"));
    QCOMPARE(shown(taught(chat, "chatml", R"({"prompt":"a","response":"b"})")),
        std::string("[s][|im_start|]user~a[|im_end|]~[|im_start|]assistant~{b[|im_end|]}~|"));
}

// <|eot_id|> is no token of this tokenizer, so the answer ends with its end of text; generation
// would never stop at a mark of ten tokens.
void TstChatFormat::aTaughtAnswerEndsWithATokenTheModelHas()
{
    const Untaught chat;
    QCOMPARE(shown(taught(chat, "llama3", kTwoTurns)),
        std::string("[s]<|start_header_id|>user<|end_header_id|>~~a<|eot_id|>"
                    "<|start_header_id|>assistant<|end_header_id|>~~{b[/s]}"
                    "<|start_header_id|>user<|end_header_id|>~~c<|eot_id|>"
                    "<|start_header_id|>assistant<|end_header_id|>~~{d[/s]}|"));
}

void TstChatFormat::aTemplateOfOnesOwnIsTaught()
{
    const Untaught chat;
    const std::string own = "{% for m in messages %}{{ m.role + ': ' + m.content + '</s>' }}"
                            "{% endfor %}{% if add_generation_prompt %}assistant: {% endif %}";
    const std::string wanted = "user: a[/s]assistant: {b[/s]}user: c[/s]assistant: {d[/s]}|";
    QCOMPARE(shown(taught(chat, chat.folder.write("own.jinja", own), kTwoTurns)), wanted);
    QCOMPARE(shown(taught(chat, own, kTwoTurns)), wanted);
    DataSource source{"x", DataFormat::Auto, {{"chat_template", chat.folder.path("own.jinja")}}};
    QVERIFY(settleTemplate(source).ok());
    QCOMPARE(source.columns["chat_template"], own); // the file is not needed again
    QVERIFY(contains(shown(taught(chat, chat.folder.write("no.txt", "plain"), kTwoTurns)),
        "holds no Jinja template"));
}

void TstChatFormat::aTaughtTemplateWritesCallsAndReasoning()
{
    const Untaught chat;
    Json call = {{"role", "assistant"}, {"content", nullptr}, {"reasoning", "r"},
        {"tool_calls",
            {{{"type", "function"}, {"function", {{"name", "f"}, {"arguments", {{"x", 1}}}}}}}}};
    const Json row = {
        {"messages", {message("user", "a"), call, message("tool", "1"), message("assistant", "b")}},
        {"tools", {{{"name", "f"}}}}};
    QCOMPARE(shown(taught(chat, "chatml", row.dump())),
        std::string("[s][|im_start|]system~Tools that can be called, each call as "
                    "<tool_call>{\"name\": ..., \"arguments\": ...}</tool_call>:~"
                    "{\"name\": \"f\"}[|im_end|]~[|im_start|]user~a[|im_end|]~"
                    "[|im_start|]assistant~{<think>~r~</think>~~"
                    "<tool_call>{\"name\": \"f\", \"arguments\": {\"x\": 1}}</tool_call>[|im_end|]}"
                    "~[|im_start|]tool~1[|im_end|]~[|im_start|]assistant~{b[|im_end|]}~|"));
}

void TstChatFormat::cutAndEmptyRowsAreCounted()
{
    Case chat(kChatMl);
    chat.options.seqLen = 24; // the first answer fits, the second does not
    Result<TokenSet> set = chat.build(
        kTwoTurns + row({message("user", std::string(40, 'q')), message("assistant", "b")}));
    QVERIFY(set.ok());
    QCOMPARE(set.value().rows, 2U);
    QCOMPARE(set.value().cutRows, 2U);
    QCOMPARE(set.value().emptyRows, 1U);
    QCOMPARE(set.value().count(), 1);
    QCOMPARE(set.value().sequences.tokens(), 25U);
    QCOMPARE(set.value().trainedTokens, 2U);
}

void TstChatFormat::everyPlaceOfATemplateIsRead()
{
    const std::string tools =
        R"({"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b"}],)"
        R"("tools":[{"name":"t"}]})";
    const Case chat("wrong");
    const Json named = {{"chat_template",
        {{{"name", "default"}, {"template", kChatMl}},
            {{"name", "tool_use"}, {"template", std::string("{{ tools[0].name }}:") + kChatMl}}}}};
    chat.folder.write("tokenizer_config.json", named.dump());
    QVERIFY(shown(chat.build(tools)).starts_with("t:[|im_start|]"));
    QVERIFY(shown(chat.build(kTwoTurns)).starts_with("[|im_start|]"));
    chat.folder.write(
        "chat_template.json", Json{{"chat_template", std::string("J") + kChatMl}}.dump());
    QVERIFY(shown(chat.build(kTwoTurns)).starts_with("J[|im_start|]"));
    chat.folder.write("chat_template.jinja", std::string("F") + kChatMl);
    QVERIFY(shown(chat.build(kTwoTurns)).starts_with("F[|im_start|]"));
    chat.folder.write("chat_template.jinja", "{% bad %}");
    QVERIFY(contains(chat.error(kTwoTurns), "the tag \"bad\" is not supported"));
}

void TstChatFormat::realChatsAreRead()
{
    const std::string data = sharedData();
    if (data.empty())
        return;
    const Json config =
        Json::parse(readFile(data + "/chat_templates/qwen2.5.tokenizer_config.json"));
    const Case chat(config["chat_template"].get<std::string>(), "", "<|im_end|>");
    const auto of = [&](const char* name) {
        return buildTokenSet({{data + "/datasets/" + name, DataFormat::Auto, {}}}, ByteTokenizer(),
            {.seqLen = 1 << 20, .modelFolder = chat.options.modelFolder});
    };

    for (const char* name :
        {"v1_sft_demo.jsonl", "glaive_toolcall_en_demo.json", "sharegpt_dummy_conversation.json"}) {
        Result<TokenSet> set = of(name);
        QVERIFY2(set.ok(), set.status().message().c_str());
        QVERIFY(set.value().rows > 10);
        QCOMPARE(set.value().emptyRows, 0U);
        QVERIFY(set.value().trainedTokens > 0);
        QVERIFY(set.value().trainedTokens < set.value().sequences.tokens());
    }
    QVERIFY(contains(of("dpo_en_demo.json").status().message(), "holds preferences"));
}

MR_TEST(TstChatFormat)

} // namespace mr::test::tst_chat_format

#include "tst_chat_format.moc"
