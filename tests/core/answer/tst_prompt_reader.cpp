#include "core/answer/prompt_reader.h"
#include "core/save/model_folder.h"
#include "core/tokenizer/small_bpe.h"
#include "support/test_room.h"

#include <QtTest>

#include <algorithm>

namespace mr::test::tst_prompt_reader {

namespace {

const char* const kTemplate =
    "{% for m in messages %}{{ '<s>' + m.role + ':' + m.content + ' <|end|>\\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<s>assistant:' }}{% endif %}";

struct ModelRig {
    Folder folder;
    std::unique_ptr<Tokenizer> tokenizer;
    ModelConfig config;

    ModelRig()
    {
        writeSmallBpe(folder);
        tokenizer = std::move(Tokenizer::open(folder.path())).value();
    }

    Result<ReadPrompt> read(const Prompt& prompt) const
    {
        return readPrompt(prompt, *tokenizer, config, folder.path());
    }
};

Prompt ask(const std::string& text, PromptForm form)
{
    Prompt prompt;
    prompt.text = text;
    prompt.form = form;
    return prompt;
}

bool has(const std::vector<TokenId>& ids, TokenId id)
{
    return std::find(ids.begin(), ids.end(), id) != ids.end();
}

} // namespace

class TestPromptReader : public QObject
{
    Q_OBJECT

private Q_SLOTS:

    void aChatIsWhatTheTemplateWritesAndNoMore()
    {
        ModelRig rig;
        rig.folder.write("chat_template.jinja", kTemplate);
        Prompt prompt = ask("hi", PromptForm::Chat);
        prompt.system = "be brief";

        const ReadPrompt read = rig.read(prompt).value();

        QCOMPARE(read.text,
            std::string("<s>system:be brief <|end|>\n<s>user:hi <|end|>\n<s>assistant:"));
        QVERIFY(read.byTemplate);
        QCOMPARE(read.tokens.front(), kSmallBpeBos); // the template's own, not another before it
        QCOMPARE(std::count(read.tokens.begin(), read.tokens.end(), kSmallBpeBos), 3);
        QCOMPARE(std::count(read.tokens.begin(), read.tokens.end(), kSmallBpeEnd), 2);
    }

    void whatAPersonWritesIsNoControlToken()
    {
        ModelRig rig;
        rig.folder.write("chat_template.jinja", kTemplate);

        const ReadPrompt read = rig.read(ask("<|end|>", PromptForm::Chat)).value();

        QCOMPARE(std::count(read.tokens.begin(), read.tokens.end(), kSmallBpeEnd), 1);
    }

    void anAnswerEndsWhereTheTemplateEndsATurn()
    {
        ModelRig rig;
        rig.folder.write("chat_template.jinja", kTemplate);
        QVERIFY(has(rig.read(ask("hi", PromptForm::Chat)).value().ends, kSmallBpeEnd));

        rig.folder.write("chat_template.jinja",
            "{% for m in messages %}{{ m.role + ': ' + m.content + '\\n' }}{% endfor %}");
        QVERIFY(rig.read(ask("hi", PromptForm::Chat)).value().ends.empty()); // plain words
    }

    void endTokensOfBothFilesCount_data()
    {
        QTest::addColumn<QString>("eos");
        QTest::addColumn<bool>("isSound");
        QTest::newRow("one") << "5" << true;
        QTest::newRow("a list") << "[5, 9]" << true;
        QTest::newRow("none") << "null" << true;
        QTest::newRow("words") << "\"</s>\"" << false;
        QTest::newRow("below zero") << "[5, -1]" << false;
    }

    void endTokensOfBothFilesCount()
    {
        QFETCH(QString, eos);
        QFETCH(bool, isSound);
        ModelRig rig;
        rig.config.eosTokens = {3};
        rig.folder.write("generation_config.json", "{\"eos_token_id\": " + eos.toStdString() + "}");

        const Result<ReadPrompt> read = rig.read(ask("hi", PromptForm::Text));

        QCOMPARE(read.ok(), isSound);
        if (!isSound) {
            QVERIFY(contains(read.status().message(), "generation_config.json"));
            return;
        }
        const ReadPrompt prompt = Result(read).value();
        QVERIFY(has(prompt.ends, 3));
        QCOMPARE(has(prompt.ends, 5), eos != "null");
        QCOMPARE(has(prompt.ends, 9), eos == "[5, 9]");
    }

    void withoutATemplateItIsRefusedOrReadAsAPair()
    {
        ModelRig rig;
        Prompt prompt = ask("hi", PromptForm::ChatIfAny);
        prompt.system = "be brief";

        const Status refused = rig.read(ask("hi", PromptForm::Chat)).status();
        const ReadPrompt pair = rig.read(prompt).value();
        const ReadPrompt text = rig.read(ask("hi", PromptForm::Text)).value();

        QCOMPARE(refused.kind(), ErrorKind::InvalidArgument);
        QVERIFY(contains(refused.message(), "no chat template"));
        QVERIFY(contains(refused.message(), "without --chat"));
        QCOMPARE(pair.text, std::string("be brief\nhi\n"));
        QVERIFY(!pair.byTemplate);
        QCOMPARE(text.text, std::string("hi"));
        QCOMPARE(text.tokens, (std::vector<TokenId>{kSmallBpeBos, 'h', 'i'}));
    }

    void badFiguresAreNamed()
    {
        Prompt prompt = ask("hi", PromptForm::Text);
        QVERIFY(checkPrompt(prompt).ok());
        prompt.system = "be brief";
        QVERIFY(contains(checkPrompt(prompt).message(), "--chat"));
        prompt.form = PromptForm::Chat;
        QVERIFY(checkPrompt(prompt).ok());
        prompt.maxTokens = 0;
        QVERIFY(contains(checkPrompt(prompt).message(), "--max-tokens 0"));
    }

    void aRunOrACheckpointMeansItsModel()
    {
        const Folder run;
        const auto make = [&](const std::string& place) {
            std::filesystem::create_directories(run.path(place));
            run.write(place + "/config.json", "{}");
        };
        QCOMPARE(modelFolderOf(run.path()).value(), run.path()); // opening it reports the error
        make("checkpoints/step-00000004/model");
        run.write("checkpoints/step-00000004/manifest.json", "{}");
        make("checkpoints/step-00000009/model"); // not complete: no manifest

        QCOMPARE(modelFolderOf(run.path()).value(), run.path("checkpoints/step-00000004/model"));
        QCOMPARE(modelFolderOf(run.path("checkpoints/step-00000009")).value(),
            run.path("checkpoints/step-00000009/model"));
        make("model");
        QCOMPARE(modelFolderOf(run.path()).value(), run.path("model"));
        QCOMPARE(modelFolderOf(run.path("model")).value(), run.path("model"));
    }
};

MR_TEST(TestPromptReader)

} // namespace mr::test::tst_prompt_reader

#include "tst_prompt_reader.moc"
