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
        QCOMPARE(
            modelPlaceOf(run.path()).value().model, run.path()); // opening it reports the error
        make("checkpoints/step-00000004/model");
        run.write("checkpoints/step-00000004/manifest.json", "{}");
        make("checkpoints/step-00000009/model"); // not complete: no manifest

        QCOMPARE(
            modelPlaceOf(run.path()).value().model, run.path("checkpoints/step-00000004/model"));
        QCOMPARE(modelPlaceOf(run.path("checkpoints/step-00000009")).value().model,
            run.path("checkpoints/step-00000009/model"));
        make("model");
        QCOMPARE(modelPlaceOf(run.path()).value().model, run.path("model"));
        QCOMPARE(modelPlaceOf(run.path("model")).value().model, run.path("model"));
    }

    void aRunOfAnAdapterMeansItsModelAndTheAdapter()
    {
        const Folder model;
        const Folder run;
        model.write("config.json", "{}");
        const auto make = [&](const std::string& place, const std::string& base) {
            std::filesystem::create_directories(run.path(place));
            run.write(place + "/adapter_model.safetensors", "");
            // Not as a raw string: moc 6.4 counts its braces.
            run.write(place + "/adapter_config.json",
                "{\"peft_type\": \"LORA\", \"target_modules\": \"all-linear\", "
                "\"base_model_name_or_path\": \"" +
                    base + "\"}");
        };
        make("adapter", model.path());
        run.write("adapter/chat_template.jinja", "taught");
        make("elsewhere", "some/model");

        for (const std::string& path : {run.path(), run.path("adapter")}) {
            const ModelPlace place = modelPlaceOf(path).value();
            QCOMPARE(place.model, model.path());
            QCOMPARE(place.adapter, run.path("adapter"));
            QCOMPARE(place.chatTemplate().value(), "taught");
        }
        QVERIFY(contains(modelPlaceOf(run.path("elsewhere")).status().message(),
            "adapter of some/model, which"));
        const ModelPlace both = modelPlaceOf(model.path(), run.path("elsewhere")).value();
        QCOMPARE(both.adapter, run.path("elsewhere"));
        QVERIFY(contains(modelPlaceOf(run.path(), run.path("elsewhere")).status().message(),
            "trained as an adapter already"));
    }
};

MR_TEST(TestPromptReader)

} // namespace mr::test::tst_prompt_reader

#include "tst_prompt_reader.moc"
