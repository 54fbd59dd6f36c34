// Tiny models of this year's families asked as `millrace generate` asks a model: greedily, with
// what was read kept. They give the tokens that transformers gives.
//
// The models lie in the shared test data (families/README.md there); the tokens are made by
// tests/reference/make_answer_goldens.py.

// The engine's headers come before those of Qt.
// clang-format off
#include "core/answer/inference.h"
#include "core/run/golden_rig.h"
#include "core/run/run_rig.h"
#include "core/tokenizer/small_bpe.h"
#include "support/test_room.h"
// clang-format on

#include <QJsonArray>

#include <utility>

namespace mr::test::tst_family_answers {

namespace {

namespace fs = std::filesystem;

fs::path families()
{
    return fs::path(sharedData()) / "families";
}

// A letter for each row of the embedding.
nlohmann::json letters(std::int64_t vocab)
{
    nlohmann::json made = smallBpe();
    made["added_tokens"] = nlohmann::json::array();
    made["model"]["merges"] = nlohmann::json::array();
    made["model"]["vocab"] = nlohmann::json::object();
    for (std::int64_t id = 0; id < vocab; ++id)
        made["model"]["vocab"][letterOf(static_cast<unsigned char>(id + 32))] = id;
    return made;
}

// The config of a family, without tokens that end a text.
nlohmann::json endlessConfig(const std::string& family)
{
    auto config = nlohmann::json::parse(readFile((families() / family / "config.json").string()));
    config.erase("eos_token_id");
    if (config.contains("text_config"))
        config["text_config"].erase("eos_token_id");
    return config;
}

// The model of a family with a tokenizer beside it.
struct Asked {
    explicit Asked(const std::string& family)
    {
        fs::copy(families() / family / "model.safetensors", folder.path("model.safetensors"));
        folder.write("config.json", endlessConfig(family).dump());
        const std::int64_t vocab = valueOf(readModelConfig(folder.path())).vocab;
        folder.write("tokenizer.json", letters(vocab).dump());
    }

    std::unique_ptr<InferenceModel> open(Device& device, std::int64_t tokens) const
    {
        const ModelConfig config = valueOf(readModelConfig(folder.path()));
        InferenceOptions options;
        options.cache = true;
        options.seqLen = roomFor(tokens, config.longestSequence());
        return valueOf(InferenceModel::load(folder.path(), options, device));
    }

    Folder folder;
};

struct Answered {
    ReadPrompt prompt;
    std::vector<TokenId> tokens;
};

std::vector<TokenId> idsOf(const QJsonValue& ids)
{
    std::vector<TokenId> all;
    for (const QJsonValue& id : ids.toArray())
        all.push_back(id.toInt());
    return all;
}

QJsonArray allAnswers()
{
    QFile file(QString::fromStdString((goldens() / "answers.json").string()));
    if (!file.open(QIODevice::ReadOnly))
        qFatal("%s cannot be read", qPrintable(file.fileName()));
    return QJsonDocument::fromJson(file.readAll()).array();
}

std::vector<Answered> answersOf(const QString& family)
{
    std::vector<Answered> all;
    for (const QJsonValue& answer : allAnswers()) {
        if (answer["family"].toString() != family)
            continue;
        all.emplace_back();
        all.back().prompt.tokens = idsOf(answer["prompt"]);
        all.back().tokens = idsOf(answer["tokens"]);
    }
    return all;
}

std::vector<TokenId> ask(InferenceModel& model, const Answered& wanted)
{
    GenerateOptions greedy;
    greedy.temperature = 0.0;
    greedy.maxTokens = std::ssize(wanted.tokens);
    return valueOf(model.generate(wanted.prompt, greedy)).tokens;
}

} // namespace

class TestFamilyAnswers : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void initTestCase()
    {
        if (!fs::exists(families()))
            QSKIP("no shared data (MILLRACE_SHARED)");
    }

    void tokensAreThoseOfTransformers_data()
    {
        QTest::addColumn<QString>("name");
        QStringList names;
        for (const QJsonValue& answer : allAnswers())
            names << answer["family"].toString();
        QVERIFY(names.removeDuplicates() > 0);
        for (const QString& name : names)
            QTest::newRow(qPrintable(name)) << name;
    }

    // The first prompt comes again behind the second one: nothing of an answer is left over.
    void tokensAreThoseOfTransformers()
    {
        QFETCH(QString, name);
        const Asked asked(name.toStdString());
        std::vector<Answered> answers = answersOf(name);
        QCOMPARE(answers.size(), std::size_t{2});
        answers.push_back(answers.front());
        const auto device = smallDevice();
        const auto model = asked.open(*device, 54);
        for (const Answered& wanted : answers)
            QCOMPARE(ask(*model, wanted), wanted.tokens);
    }
};

MR_TEST(TestFamilyAnswers)

} // namespace mr::test::tst_family_answers

#include "tst_family_answers.moc"
