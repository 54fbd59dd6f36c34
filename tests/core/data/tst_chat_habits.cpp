// How templates read conversations, and the text around the answers that they write.

#include "core/data/chat_case.h"
#include "core/data/chat_format.h"
#include "core/data/chat_sources.h"
#include "support/test_room.h"

#include <millrace/library.h>

namespace mr::test::tst_chat_habits {

namespace {

const std::string kTwoTurns = row({message("user", "a"), message("assistant", "b"),
    message("user", "c"), message("assistant", "d")});

// Its end token takes the line feeds behind it along, as those of Phi-3 do.
class GreedyTokenizer final : public ByteTokenizer
{
public:
    Status encodeParts(std::span<const TextPart> parts, std::vector<TokenId>& ids,
        std::vector<std::size_t>& ends) const override
    {
        std::vector<TokenId> plain;
        std::vector<std::size_t> plainEnds;
        MR_TRY(ByteTokenizer::encodeParts(parts, plain, plainEnds));
        for (std::size_t i = 0; i < plain.size(); ++i) {
            if (plain[i] == '\n' && !ids.empty() && ids.back() == kEnd) {
                ends.back() = plainEnds[i];
                continue;
            }
            ids.push_back(plain[i]);
            ends.push_back(plainEnds[i]);
        }
        return {};
    }

    static constexpr TokenId kEnd = 257;
};

std::string shownGreedily(const std::string& source)
{
    const Case chat(source);
    DataSource data{chat.folder.write("chat.jsonl", kTwoTurns), DataFormat::Auto, {}};
    return shown(buildTokenSet({data}, GreedyTokenizer(), chat.options));
}

} // namespace

class TstChatHabits : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void anEndTokenThatTakesWhiteSpaceAlongIsTrained();
    void aPromptThatNobodyAskedForIsNotTrained();
    void aPromptOfItsOwnKindIsNotTrained();
    void anEndThatCannotBeToldIsRefused();
    void habitsOfATemplateThatWantsASystemTextAreFound();
    void aHeaderThatNoPromptWroteIsNotTrained();
    void aHeaderThatTheModelWritesItselfIsTrained();
    void anAnswerWithoutASureBeginningIsRefused();
    void aThoughtThatThePromptOpensIsNotPartOfAPlainAnswer();
    void anEmptyThoughtBelongsToTheAnswer();
    void partsGoToTemplatesThatReadThem();
    void specialTokensAreThoseOfTransformers();
    void namesThatAreNullAreNotDefined();
    void acceptedChatsAreCountedAsElsewhere();
};

void TstChatHabits::anEndTokenThatTakesWhiteSpaceAlongIsTrained()
{
    QCOMPARE(shownGreedily(kChatMl),
        std::string("[|im_start|]user~a[|im_end|][|im_start|]assistant~{b[|im_end|]}"
                    "[|im_start|]user~c[|im_end|][|im_start|]assistant~{d[|im_end|]}|"));
    QCOMPARE(shownGreedily("{% for m in messages %}{{ m.role }}:{% generation %}{{ m.content + "
                           "'<|im_end|>' }}{% endgeneration %}{{ '\\n' }}{% endfor %}"),
        std::string("user:{a[|im_end|]}assistant:{b[|im_end|]}"
                    "user:{c[|im_end|]}assistant:{d[|im_end|]}|"));
}

void TstChatHabits::aPromptThatNobodyAskedForIsNotTrained()
{
    const Case chat("{% for m in messages %}{{ '<|im_start|>' + m.role + '\\n' + m.content + "
                    "'<|im_end|>' }}{% endfor %}{{ '<|im_start|>assistant\\n' }}",
        "<s>", "<|im_end|>");
    QCOMPARE(shown(chat.build(kTwoTurns)),
        std::string("[|im_start|]user~a[|im_end|][|im_start|]assistant~{b[|im_end|]}"
                    "[|im_start|]user~c[|im_end|][|im_start|]assistant~{d[|im_end|]}"
                    "[|im_start|]assistant~|"));
}

// Without a special token an answer ends where the text after it differs from the text before it.
void TstChatHabits::aPromptOfItsOwnKindIsNotTrained()
{
    const Case chat("{% for m in messages %}{{ '\\nQ: ' + m.content if m.role == 'user' else "
                    "m.content + ' (end)' }}"
                    "{% if m.role == 'user' %}{{ '\\nA: ' }}{% endif %}{% endfor %}"
                    "{% if messages[-1].role == 'assistant' %}{{ '\\nA: ' }}{% endif %}");
    QCOMPARE(
        shown(chat.build(kTwoTurns)), std::string("~Q: a~A: {b (end)}~Q: c~A: {d (end)}~A: |"));
}

void TstChatHabits::anEndThatCannotBeToldIsRefused()
{
    const Case chat("{% for m in messages %}{{ '[' + m.role + ']' + m.content }}{% endfor %}"
                    "{{ '[assistant]' }}");
    QVERIFY(contains(chat.error(kTwoTurns), "where the answer ends cannot be told"));
}

void TstChatHabits::habitsOfATemplateThatWantsASystemTextAreFound()
{
    const Case chat("{% for m in messages %}{% if loop.first and m.role != 'system' %}"
                    "{{ raise_exception('no system') }}{% endif %}"
                    "{{ '<|im_start|>' + m.role + '\n' + m.content + '<|im_end|>' }}{% endfor %}"
                    "{{ '<|im_start|>assistant\n' }}",
        "<s>", "<|im_end|>");
    QCOMPARE(shown(chat.build(
                 row({message("system", "s"), message("user", "a"), message("assistant", "b")}))),
        std::string("[|im_start|]system~s[|im_end|][|im_start|]user~a[|im_end|]"
                    "[|im_start|]assistant~{b[|im_end|]}[|im_start|]assistant~|"));
}

// Qwen 1.5 asks after a question only; of two answers in a row the second has its header still.
void TstChatHabits::aHeaderThatNoPromptWroteIsNotTrained()
{
    const std::string answers = row({message("user", "a"), message("assistant", "b"),
        message("assistant", "c"), message("user", "d"), message("assistant", "e")});
    const Case marks(
        "{% for m in messages %}{{ '<|im_start|>' + m.role + '\n' + m.content + '<|im_end|>' }}"
        "{% endfor %}{% if add_generation_prompt and messages[-1].role == 'user' %}"
        "{{ '<|im_start|>assistant\n' }}{% endif %}");
    QCOMPARE(shown(marks.build(answers)),
        std::string("[|im_start|]user~a[|im_end|][|im_start|]assistant~{b[|im_end|]}"
                    "[|im_start|]assistant~{c[|im_end|]}[|im_start|]user~d[|im_end|]"
                    "[|im_start|]assistant~{e[|im_end|]}|"));
    const Case words("{% for m in messages %}{{ '### Q:\n' if m.role == 'user' else '### A:\n' }}"
                     "{{ m.content + '\n' }}{% endfor %}"
                     "{% if add_generation_prompt and messages[-1].role == 'user' %}"
                     "{{ '### A:' }}{% endif %}");
    QCOMPARE(shown(words.build(answers)),
        std::string("### Q:~a~### A:{~b}~### A:{~c}~### Q:~d~### A:{~e}~|"));
}

// The prompt of gpt-oss ends before the channel, of which the model writes the name.
void TstChatHabits::aHeaderThatTheModelWritesItselfIsTrained()
{
    const Case chat("{% for m in messages %}{{ '<|im_start|>' + m.role }}"
                    "{{ ':final:' if m.role == 'assistant' else ':' }}{{ m.content + '</s>' }}"
                    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant' }}"
                    "{% endif %}");
    QCOMPARE(shown(chat.build(row(
                 {message("user", "a"), message("assistant", "b"), message("assistant", "c")}))),
        std::string("[|im_start|]user:a[/s][|im_start|]assistant{:final:b[/s]}"
                    "[|im_start|]assistant{:final:c[/s]}|"));
}

// A header between two answers that stands before no other answer may be the model's or not.
void TstChatHabits::anAnswerWithoutASureBeginningIsRefused()
{
    const Case chat("{% for m in messages %}{{ 'Q: ' if m.role == 'user' else "
                    "('More: ' if loop.index0 > 0 and messages[loop.index0 - 1].role != 'user' "
                    "else 'A: ') }}{{ m.content + '\n' }}{% endfor %}"
                    "{% if add_generation_prompt and messages[-1].role == 'user' %}"
                    "{{ 'A: ' }}{% endif %}");
    QVERIFY(contains(chat.error(row({message("user", "a"), message("assistant", "b"),
                         message("assistant", "c")})),
        "message 3 without the prompt that asks for it"));
}

// DeepSeek-R1 opens a thought, Gemma 4 writes an empty one; written answers have none.
void TstChatHabits::aThoughtThatThePromptOpensIsNotPartOfAPlainAnswer()
{
    for (const char* thought : {"<think>\\n", "<|channel>thought\\n<channel|>"}) {
        const Case chat(
            std::string("{% for m in messages %}{{ '<|' + m.role + '|>' + m.content + '</s>' }}"
                        "{% endfor %}{% if add_generation_prompt %}{{ '<|assistant|>") +
            thought + "' }}{% endif %}");
        QCOMPARE(shown(chat.build(kTwoTurns)),
            std::string("<|user|>a[/s]<|assistant|>{b[/s]}<|user|>c[/s]<|assistant|>{d[/s]}|"));
        // An answer that begins with the thought goes on with the prompt.
        QVERIFY(contains(shown(chat.build(row(
                             {message("user", "a"), message("assistant", "<think>\nx</think>b")}))),
            thought[1] == 't' ? "<|assistant|><think>~{x</think>b[/s]}"
                              : "<|assistant|>{<think>~x</think>b[/s]}"));
    }
}

// Nemotron 3 asks with an open thought and writes an answer without one behind an empty one.
void TstChatHabits::anEmptyThoughtBelongsToTheAnswer()
{
    const Case chat(
        "{% for m in messages %}{{ '<|' + m.role + '|>' }}{% if m.role == 'assistant' %}"
        "{{ '<think></think>' }}{% endif %}{{ m.content + '</s>' }}"
        "{% endfor %}{% if add_generation_prompt %}{{ '<|assistant|><think>\\n' }}"
        "{% endif %}");
    QCOMPARE(shown(chat.build(kTwoTurns)),
        std::string("<|user|>a[/s]<|assistant|><think>{</think>b[/s]}"
                    "<|user|>c[/s]<|assistant|><think>{</think>d[/s]}|"));
}

void TstChatHabits::partsGoToTemplatesThatReadThem()
{
    const Case chat("{% for m in messages %}{{ m.role + ':' }}{% for p in m.content %}"
                    "{% if p.type == 'text' %}{{ '[' + p.text + ']' }}{% endif %}{% endfor %}</s>"
                    "{% endfor %}{% if add_generation_prompt %}assistant:{% endif %}");
    QCOMPARE(shown(chat.build(kTwoTurns)),
        std::string("user:[a][/s]assistant:{[b][/s]}user:[c][/s]assistant:{[d][/s]}|"));
    const Json parts = {{{"type", "text"}, {"text", "a"}}, {{"type", "text"}, {"text", "b"}}};
    const std::string two =
        row({Json{{"role", "user"}, {"content", parts}}, message("assistant", "c")});
    QCOMPARE(shown(chat.build(two)), std::string("user:[a][b][/s]assistant:{[c][/s]}|"));
    const Case texts(kChatMl);
    QCOMPARE(shown(texts.build(two)),
        std::string("[|im_start|]user~ab[|im_end|]~[|im_start|]assistant~{c[|im_end|]}~|"));
}

void TstChatHabits::specialTokensAreThoseOfTransformers()
{
    const Folder folder;
    folder.write("tokenizer_config.json",
        R"({"bos_token":"<a>","eos_token":{"content":"<b>","lstrip":false},"unk_token":"<u>",
            "image_token":"<image>","extra_special_tokens":{"video_token":"<video>"}})");
    folder.write("special_tokens_map.json", R"({"bos_token":"<c>","pad_token":"<p>"})");

    const std::map<std::string, std::string> wanted{{"bos_token", "<c>"}, {"eos_token", "<b>"},
        {"unk_token", "<u>"}, {"pad_token", "<p>"}, {"image_token", "<image>"},
        {"video_token", "<video>"}};
    QVERIFY(readTemplateTokens(folder.path()) == wanted);
    folder.write("tokenizer_config.json", R"({"bos_token":"<a>","added_tokens_decoder":{}})");
    QVERIFY(readTemplateTokens(folder.path()) ==
            (std::map<std::string, std::string>{{"bos_token", "<a>"}}));
}

void TstChatHabits::namesThatAreNullAreNotDefined()
{
    Case chat("");
    const Json config = {{"bos_token", nullptr}, {"eos_token", "</s>"},
        {"chat_template",
            std::string("{{ 'B' if bos_token is defined else 'N' }}{{ bos_token }}") + kChatMl}};
    chat.folder.write("tokenizer_config.json", config.dump());
    QVERIFY(shown(chat.build(kTwoTurns)).starts_with("N[|im_start|]user"));
}

// Counts of transformers' assistant masks, and of the rule where a template marks nothing.
void TstChatHabits::acceptedChatsAreCountedAsElsewhere()
{
    const std::string data = sharedData();
    if (data.empty() || !QDir(QString::fromStdString(data + "/acceptance/chats")).exists())
        return;
    const std::string chats = data + "/acceptance/chats/";
    const auto counts = [&](const char* file, const char* model) {
        DataSource source;
        source.path = chats + file;
        const Result<DatasetInfo> info = inspectDataset(source, chats + model, 1024, 0);
        return info.ok() ? Result(info).value() : DatasetInfo();
    };

    for (const char* model : {"phi3_plain", "phi3_rstrip", "gen_plain", "gen_rstrip"})
        QCOMPARE(counts("one.jsonl", model).trainedTokens, 4);
    QCOMPARE(counts("qa2.jsonl", "llama3_orig").trainedTokens, 4);
    QCOMPARE(counts("qa.jsonl", "map_only").tokens, 18);
    for (const char* file : {"reasoning.jsonl", "reasoning_content.jsonl", "thinking.jsonl"})
        QCOMPARE(counts(file, "qwen3").tokens, 35);
}

MR_TEST(TstChatHabits)

} // namespace mr::test::tst_chat_habits

#include "tst_chat_habits.moc"
