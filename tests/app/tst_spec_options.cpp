// SpecOptions: the command line that a spec is copied as asks for that spec.

#include "app/cli/spec_options.h"
#include "support/other_spec.h"
#include "support/test_room.h"

#include <QTemporaryDir>
#include <QtTest>

#include <algorithm>
#include <fstream>

namespace mr::test::tst_spec_options {

namespace {

Result<RunSpec> parsed(std::vector<std::string> arguments)
{
    CLI::App app;
    mr::app::SpecOptions options;
    options.addTo(app, true);
    std::reverse(arguments.begin(), arguments.end()); // as the parser wants them
    app.parse(arguments);
    return options.spec();
}

} // namespace

class TestSpecOptions : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void initTestCase()
    {
        QVERIFY(m_folder.isValid());
        m_usable.modelDir = "/model";
        m_usable.data = {{file("train.jsonl"), DataFormat::Jsonl,
            {{"prompt", "q"}, {"response", "a"}, {"style", "plain"}}, true}};
    }

    void aCopiedCommandAsksForTheSameRun_data()
    {
        QTest::addColumn<QString>("key");
        for (const SpecField& field : specFields())
            if (!field.option.empty() && !isOfModelOrData(field))
                QTest::newRow(std::string(field.key).c_str())
                    << QString::fromStdString(std::string(field.key));
    }

    void aCopiedCommandAsksForTheSameRun()
    {
        QFETCH(const QString, key);
        RunSpec given = m_usable;
        setOther(*findSpecField(key.toStdString()), given);
        if (key == "disk_bytes")
            given.diskPaths = {"/fast"};
        if (key == "weights")
            given.optimizer = Optimizer::Factored;
        const bool isOfTurns = key == "train" || key == "block_steps";
        given.train = isOfTurns ? TrainOrder::Blocks : TrainOrder::Together;
        given.method = isOfTurns ? "full" : "lora"; // takes all options but these

        Result<RunSpec> read = parsed(trainArguments(given));

        QVERIFY2(read.ok(), read.status().message().c_str());
        QVERIFY(read.value() == given);
    }

    void allowanceIsOfPoliciesAndOfOptimizers()
    {
        const auto allowed = [&](const std::vector<std::string>& words) {
            std::vector<std::string> arguments = trainArguments(m_usable);
            for (const std::string& word : words)
                arguments.insert(arguments.end(), {"--allow", word});
            return parsed(arguments);
        };
        Result<RunSpec> both = allowed({"stale", "other-optimizer"});
        QVERIFY2(both.ok(), both.status().message().c_str());
        QVERIFY(both.value().allowStale && both.value().allowOther);
        Result<RunSpec> neither = allowed({"stale", "adamw", "exact"});
        QVERIFY(!neither.value().allowStale && !neither.value().allowOther);
        QCOMPARE(allowed({"sgd"}).status().message(),
            std::string("--allow 'sgd': want one of exact, stale, adamw, other-optimizer"));
    }

    void datasetsAreReadAlike()
    {
        RunSpec given = m_usable;
        given.evalData = {m_usable.data.front()};
        given.evalData.front().path = file("eval.jsonl");

        Result<RunSpec> read = parsed(trainArguments(given));

        QVERIFY2(read.ok(), read.status().message().c_str());
        QVERIFY(read.value() == given);
    }

    void aModelFromScratchHasItsTokenizer()
    {
        RunSpec given = m_usable;
        given.modelDir.clear();
        given.scratchConfig = "config.json";
        given.scratchTokenizer = "tokenizer.model";

        Result<RunSpec> read = parsed(trainArguments(given));

        QVERIFY2(read.ok(), read.status().message().c_str());
        QVERIFY(read.value() == given);
    }

    void anOptionIsGivenOnce()
    {
        std::vector<std::string> arguments = trainArguments(m_usable);
        for (const char* word : {"--steps", "1", "--steps", "2"})
            arguments.emplace_back(word);
        QVERIFY_EXCEPTION_THROWN(parsed(arguments), CLI::ParseError);
    }

private:
    static bool isOfModelOrData(const SpecField& field)
    {
        return field.key == "model_dir" || field.key.starts_with("scratch_") ||
               field.key == "data" || field.key == "eval_data";
    }

    std::string file(const char* name) const
    {
        const std::string path = m_folder.filePath(name).toStdString();
        std::ofstream(path) << "{}\n";
        return path;
    }

    QTemporaryDir m_folder;
    RunSpec m_usable;
};

MR_TEST(TestSpecOptions)

} // namespace mr::test::tst_spec_options

#include "tst_spec_options.moc"
