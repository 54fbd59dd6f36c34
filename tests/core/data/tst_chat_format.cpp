#include "core/data/batch_stream.h"
#include "core/data/chat_format.h"
#include "core/data/conversation.h"
#include "core/data/data_files.h"

#include <nlohmann/json.hpp>

using namespace mr;
using namespace mr::test;

namespace {

using Json = nlohmann::ordered_json;

const char* const kChatMl =
    "{% for m in messages %}{{ '<|im_start|>' + m.role + '\\n' + m.content + '<|im_end|>' + '\\n' "
    "}}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}";

// One id per byte, and control tokens where the template may write them.
class ByteTokenizer final : public Tokenizer
{
public:
    static constexpr std::array<std::string_view, 4> kControls{
        "<|im_start|>", "<|im_end|>", "<s>", "</s>"};

    std::string_view kind() const noexcept override { return "bytes"; }
    std::int64_t vocabulary() const noexcept override { return 260; }
    TokenId bos() const noexcept override { return 258; }
    TokenId eos() const noexcept override { return 259; }
    bool addsBos() const noexcept override { return true; }

    Status encode(std::string_view text, std::vector<TokenId>& out) const override
    {
        std::vector<std::size_t> ends;
        const TextPart part{text};
        return encodeParts({&part, 1}, out, ends);
    }

    Status encodeParts(std::span<const TextPart> parts, std::vector<TokenId>& ids,
        std::vector<std::size_t>& ends) const override
    {
        std::size_t before = 0;
        for (const TextPart& part : parts) {
            for (std::size_t at = 0; at < part.text.size();) {
                std::size_t length = 1;
                TokenId id = static_cast<unsigned char>(part.text[at]);
                for (std::size_t c = 0; part.controls && c < kControls.size(); ++c)
                    if (part.text.substr(at).starts_with(kControls[c])) {
                        length = kControls[c].size();
                        id = 256 + static_cast<TokenId>(c);
                    }
                at += length;
                ids.push_back(id);
                ends.push_back(before + at);
            }
            before += part.text.size();
        }
        return {};
    }

    Result<std::string> decode(std::span<const TokenId> ids) const override
    {
        std::string out;
        for (const TokenId id : ids)
            out += piece(id);
        return out;
    }

    // Control tokens as [/s], so that they differ from bytes that look like them.
    std::string piece(TokenId id) const override
    {
        if (id < 256)
            return std::string(1, static_cast<char>(id));
        const std::string_view name = kControls[static_cast<std::size_t>(id - 256)];
        return "[" + std::string(name.substr(1, name.size() - 2)) + "]";
    }
};

// A model's folder with a template, and data beside it.
struct Case {
    Folder folder;
    TokenSetOptions options{.seqLen = 4096};

    explicit Case(const std::string& source, const char* bos = "<s>", const char* eos = "</s>")
    {
        const Json config = {{"chat_template", source}, {"bos_token", bos}, {"eos_token", eos}};
        folder.write("tokenizer_config.json", config.dump());
        options.modelFolder = folder.path();
    }

    Result<TokenSet> build(const std::string& jsonl) const
    {
        return buildTokenSet(
            {{folder.write("chat.jsonl", jsonl), DataFormat::Auto, {}}}, ByteTokenizer(), options);
    }
    std::string error(const std::string& jsonl) const
    {
        const Result<TokenSet> set = build(jsonl);
        return set.ok() ? std::string() : set.status().message();
    }
};

// The sequences as text, one a line, with what is trained in braces.
std::string shown(Result<TokenSet> result)
{
    if (!result.ok())
        return result.status().message();
    const TokenSet& set = result.value();
    std::string out;
    TokenSequence sequence;
    for (std::int64_t s = 0; s < set.count(); ++s) {
        bool on = false;
        if (const Status read = set.sequences.read(s, sequence); !read.ok())
            return read.message();
        for (std::size_t t = 0; t < sequence.tokens.size(); ++t) {
            if ((sequence.trained[t] != 0) != on)
                out += on ? "}" : "{";
            on = sequence.trained[t] != 0;
            const std::string piece = ByteTokenizer().piece(sequence.tokens[t]);
            out += piece == "\n" ? "~" : piece;
        }
        out += on ? "}|" : "|";
    }
    return out;
}

Json message(const char* role, const std::string& content)
{
    return {{"role", role}, {"content", content}};
}

std::string row(std::initializer_list<Json> messages)
{
    Json list = Json::array();
    for (const Json& one : messages)
        list.push_back(one);
    return Json{{"messages", list}}.dump() + "\n";
}

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

private slots:
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
    QVERIFY(says(row({message("assistant", "a")}), "message 1"));
    QVERIFY(says(row({message("system", "s"), message("assistant", "a")}), "message 2"));
    QVERIFY(says(row({message("user", "a")}), "no answer"));
    QVERIFY(says(row({message("user", "a"), message("system", "b"), message("assistant", "c")}),
        "message 2 of the conversation is a system message"));
    QVERIFY(says(row({message("user", "a"), {{"role", "assistant"}}}), "no \"content\""));
    QVERIFY(says(row({message("user", "a"), {{"role", "assistant"}, {"content", 5}}}), "not text"));
    QVERIFY(says(R"({"messages":[]})", "empty"));
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

QTEST_APPLESS_MAIN(TstChatFormat)
#include "tst_chat_format.moc"
