// Templates that Ollama runs, learned from those of models.

#include "core/data/data_files.h"
#include "core/exchange/modelfile.h"
#include "core/exchange/ollama_template.h"
#include "support/test_room.h"

#include <QtTest>

#include <nlohmann/json.hpp>

namespace mr::test::tst_ollama_template {

namespace {

using Json = nlohmann::ordered_json;

const std::string kHeaders =
    "{{ bos_token }}{% for m in messages %}{{ '<|start_header_id|>' + m.role + "
    "'<|end_header_id|>\\n\\n' + m.content + '<|eot_id|>' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}"
    "{% endif %}";

const std::string kNoSystem =
    "{% for m in messages %}{% if m.role == 'system' %}{{ raise_exception('no system') }}{% endif "
    "%}<start_of_turn>{{ 'model' if m.role == 'assistant' else m.role }}\n{{ m.content | trim "
    "}}<end_of_turn>\n{% endfor %}{% if add_generation_prompt %}<start_of_turn>model\n{% endif %}";

// The system text becomes a part of the first question.
const std::string kInQuestion =
    "{% set ns = namespace(system='') %}{% for m in messages %}{% if m.role == 'system' %}"
    "{% set ns.system = m.content + '\\n\\n' %}{% elif m.role == 'user' %}[INST] {{ ns.system + "
    "m.content }}[/INST]{% set ns.system = '' %}{% else %} {{ m.content }}</s>{% endif %}"
    "{% endfor %}";

// Earlier answers change with what follows them.
const std::string kCounting =
    "{% for m in messages %}{{ loop.index }} {{ m.role }}: {{ m.content }}\n{% endfor %}"
    "{% if add_generation_prompt %}answer: {% endif %}";

Json conversation(std::initializer_list<std::pair<const char*, const char*>> turns)
{
    Json messages = Json::array();
    for (const auto& [role, content] : turns)
        messages.push_back({{"role", role}, {"content", content}});
    return messages;
}

struct TemplateFolder {
    Folder folder;

    explicit TemplateFolder(const std::string& source)
    {
        const Json config = {{"chat_template", source}, {"bos_token", "<s>"}};
        folder.write("tokenizer_config.json", config.dump());
    }
    ChatFormat format() const { return ChatFormat::open(folder.path()).value(); }
};

} // namespace

class TestOllamaTemplate : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void conversationsAreWrittenAsTheModelsOwn_data();
    void conversationsAreWrittenAsTheModelsOwn();
    void whatIsNoRowOfTextsIsLeftToTheFile();
    void publishedTemplates_data();
    void publishedTemplates();
    void theTextIsThatOfGo();
    void aModelfileNamesItsParts();
    void quotesThatAModelfileCannotHoldAreRefused();
};

void TestOllamaTemplate::conversationsAreWrittenAsTheModelsOwn_data()
{
    QTest::addColumn<QString>("source");
    QTest::addColumn<bool>("system");
    QTest::newRow("headers") << QString::fromStdString(kHeaders) << true;
    QTest::newRow("no system") << QString::fromStdString(kNoSystem) << false;
    QTest::newRow("in the question") << QString::fromStdString(kInQuestion) << true;
}

void TestOllamaTemplate::conversationsAreWrittenAsTheModelsOwn()
{
    QFETCH(QString, source);
    QFETCH(bool, system);
    const TemplateFolder model(source.toStdString());
    const ChatFormat format = model.format();

    auto learned = learnOllamaTemplate(format, "<s>");

    QVERIFY2(learned.ok(), learned.status().message().c_str());
    QVERIFY(learned.value().has_value());
    const OllamaTemplate found = *learned.value();
    QCOMPARE(found.takesSystem, system);
    Json messages = conversation({{"user", "a b"}, {"assistant", "c"}, {"user", "d\ne"}});
    if (system)
        messages.insert(messages.begin(), Json{{"role", "system"}, {"content", "Be brief."}});
    std::string want = format.write(Json{{"messages", messages}}, true).value().text();
    if (want.starts_with("<s>"))
        want.erase(0, 3);
    QCOMPARE(found.render(messages), want);
}

void TestOllamaTemplate::whatIsNoRowOfTextsIsLeftToTheFile()
{
    auto learned = learnOllamaTemplate(TemplateFolder(kCounting).format(), "<s>");
    QVERIFY2(learned.ok(), learned.status().message().c_str());
    QVERIFY(!learned.value().has_value());
}

void TestOllamaTemplate::publishedTemplates_data()
{
    QTest::addColumn<QString>("file");
    QTest::addColumn<QString>("first"); // before the first question
    QTest::newRow("Qwen 2.5") << "qwen2.5.tokenizer_config.json"
                              << "<|im_start|>system\nYou are Qwen, created by Alibaba Cloud. You "
                                 "are a helpful assistant.<|im_end|>\n<|im_start|>user\n";
    QTest::newRow("Phi 4 mini") << "phi-4-mini.tokenizer_config.json"
                                << "<|user|>";
}

void TestOllamaTemplate::publishedTemplates()
{
    QFETCH(QString, file);
    QFETCH(QString, first);
    const std::string shared = sharedData();
    if (shared.empty())
        QSKIP("the shared test data is not there");
    const Folder folder;
    folder.write(
        "tokenizer_config.json", readFile(shared + "/chat_templates/" + file.toStdString()));

    auto learned = learnOllamaTemplate(ChatFormat::open(folder.path()).value(), "");

    QVERIFY2(learned.ok(), learned.status().message().c_str());
    QVERIFY(learned.value().has_value());
    QCOMPARE(learned.value()->firstUser, first.toStdString());
    QVERIFY(learned.value()->takesSystem);
}

void TestOllamaTemplate::theTextIsThatOfGo()
{
    auto learned = learnOllamaTemplate(TemplateFolder(kNoSystem).format(), "<s>");
    QCOMPARE(learned.value()->text(),
        std::string("{{ range $i, $m := .Messages }}{{ if eq $m.Role \"user\" }}{{ if eq $i 0 }}"
                    "<start_of_turn>user\n{{ else if and $.System (eq $i 1) }}"
                    "<start_of_turn>user\n{{ else }}<end_of_turn>\n<start_of_turn>user\n{{ end }}"
                    "{{ $m.Content }}{{ else if eq $m.Role \"assistant\" }}<end_of_turn>\n"
                    "<start_of_turn>model\n{{ $m.Content }}{{ end }}{{ end }}<end_of_turn>\n"
                    "<start_of_turn>model\n"));
    OllamaTemplate braces{true, "{{s", "u", "v", "w", "a", "e"};
    QCOMPARE(braces.text(),
        std::string("{{ range $i, $m := .Messages }}{{ if eq $m.Role \"system\" }}{{ \"{{\" }}s"
                    "{{ $m.Content }}{{ else if eq $m.Role \"user\" }}{{ if eq $i 0 }}u{{ else if "
                    "and $.System (eq $i 1) }}v{{ else }}w{{ end }}{{ $m.Content }}{{ else if eq "
                    "$m.Role \"assistant\" }}a{{ $m.Content }}{{ end }}{{ end }}e"));
}

void TestOllamaTemplate::aModelfileNamesItsParts()
{
    const Folder folder;
    folder.write("generation_config.json",
        R"({"temperature": 0.7, "top_k": 20, "repetition_penalty": 1.05, "eos_token_id": [1, 2]})");
    Modelfile file{"./model.gguf", "{{ .Messages }}", {"<|im_end|>", "a\"b"},
        modelfileSampling(folder.path()).value()};

    QCOMPARE(file.text().value(), std::string("# ollama create NAME -f Modelfile\n"
                                              "FROM ./model.gguf\n"
                                              "TEMPLATE \"\"\"{{ .Messages }}\"\"\"\n"
                                              "PARAMETER stop \"<|im_end|>\"\n"
                                              "PARAMETER temperature 0.7\n"
                                              "PARAMETER top_k 20\n"
                                              "PARAMETER repeat_penalty 1.05\n"));
    QVERIFY(modelfileSampling(folder.path("none")).value().empty());
    folder.write("generation_config.json", "[");
    QVERIFY(contains(modelfileSampling(folder.path()).status().message(), "is no JSON object"));
}

void TestOllamaTemplate::quotesThatAModelfileCannotHoldAreRefused()
{
    Modelfile file;
    file.chatTemplate = "a\"\"\"b";
    QVERIFY(contains(file.text().status().message(), "quotes that a Modelfile cannot hold"));
}

MR_TEST(TestOllamaTemplate)

} // namespace mr::test::tst_ollama_template

#include "tst_ollama_template.moc"
