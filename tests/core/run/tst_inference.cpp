// A model folder that is asked or evaluated: tokenizers that do not belong to it, numbers that are
// none, and rotary positions that depend on a length.

// The engine's headers come before those of Qt.
// clang-format off
#include "core/run/changed_model.h"
#include "core/answer/inference.h"
#include "core/device/adamw.h"
#include "core/model/peft_folder.h"
#include "support/test_room.h"
// clang-format on

#include <QtTest>

#include <cmath>

namespace mr::test::tst_inference {

namespace {

using nlohmann::json;

using Model = ChangedModel;

Result<std::unique_ptr<InferenceModel>> load(
    const Model& of, Device& device, std::int64_t seqLen = 0)
{
    InferenceOptions options;
    options.cache = true;
    options.seqLen = seqLen;
    return InferenceModel::load(of.folder.path(), options, device);
}

std::unique_ptr<InferenceModel> open(const Model& of, Device& device, std::int64_t seqLen = 0)
{
    auto model = load(of, device, seqLen);
    if (!model.ok())
        qFatal("%s", model.status().message().c_str());
    return std::move(model).value();
}

// Factors so far apart that the wrong ones show in the first token.
json longRope()
{
    return {{"rope_scaling",
        {{"rope_type", "longrope"}, {"short_factor", {1.0, 1.0, 1.0}},
            {"long_factor", {9.0, 5.0, 7.0}}, {"original_max_position_embeddings", 16}}}};
}

AdapterSettings downProjections()
{
    AdapterSettings settings;
    settings.rank = 2;
    settings.targets = {"down_proj"};
    return settings;
}

ReadPrompt somePrompt(int tokens)
{
    ReadPrompt prompt;
    for (int i = 0; i < tokens; ++i)
        prompt.tokens.push_back(20 + i * 37 % 200);
    return prompt;
}

Result<Generated> ask(InferenceModel& model, const ReadPrompt& prompt, std::int64_t tokens)
{
    GenerateOptions options;
    options.maxTokens = tokens;
    options.temperature = 0.0;
    return model.generate(prompt, options);
}

std::vector<TokenId> greedy(InferenceModel& model, const ReadPrompt& prompt, std::int64_t tokens)
{
    const Result<Generated> made = ask(model, prompt, tokens);
    if (!made.ok())
        qFatal("%s", made.status().message().c_str());
    return Result(made).value().tokens;
}

TokenSet setOf(const std::vector<std::vector<TokenId>>& sequences)
{
    TokenSet set;
    for (const auto& tokens : sequences) {
        const std::vector<std::uint8_t> trained(tokens.size(), 1);
        if (!set.sequences.add(tokens, trained).ok())
            qFatal("a sequence cannot be kept");
        set.trainedTokens += tokens.size() - 1;
    }
    return set;
}

} // namespace

class TestInference : public QObject
{
    Q_OBJECT

private Q_SLOTS:

    void aTokenizerWithMoreIdsThanTheModelHasRowsIsRefused()
    {
        const Model small(json::object({{"vocab_size", 100}}));
        const auto device = smallDevice();

        const Status refused = load(small, *device).status();

        QVERIFY(!refused.ok());
        QCOMPARE(refused.kind(), ErrorKind::InvalidArgument);
        QVERIFY2(contains(refused.message(), "the model only 100"), refused.message().c_str());
        QVERIFY(contains(refused.message(), small.folder.path()));
    }

    void anIdWithoutARowReachesNoOp_data()
    {
        QTest::addColumn<int>("id");
        QTest::addColumn<int>("place");
        QTest::addRow("an input") << 400 << 2;
        QTest::addRow("the last, which is a target alone") << 400 << 4;
        QTest::addRow("far away") << 2'000'000'000 << 1;
    }

    void anIdWithoutARowReachesNoOp()
    {
        QFETCH(const int, id);
        QFETCH(const int, place);
        const Model model;
        const auto device = smallDevice();
        const auto opened = open(model, *device);
        std::vector<TokenId> tokens{5, 6, 7, 8, 9};
        QVERIFY(opened->evaluate(setOf({tokens})).ok());
        tokens[static_cast<std::size_t>(place)] = id;

        const Status refused = opened->evaluate(setOf({tokens})).status();

        QVERIFY(!refused.ok());
        QCOMPARE(refused.kind(), ErrorKind::InvalidArgument);
        QVERIFY2(contains(refused.message(), std::to_string(id)), refused.message().c_str());
        QVERIFY(opened->evaluate(setOf({{5, 6, 7}})).ok()); // nothing is lost
    }

    void numbersThatAreNotFiniteEndEvaluationAndGeneration()
    {
        const Model model;
        model.fill("model.layers.0.mlp.down_proj.weight", 3e38F);
        const auto device = smallDevice();
        const auto opened = open(model, *device);

        const Status evaluated = opened->evaluate(setOf({{5, 6, 7, 8}})).status();
        const Status generated = ask(*opened, somePrompt(4), 3).status();

        QVERIFY(!evaluated.ok());
        QCOMPARE(evaluated.kind(), ErrorKind::Internal);
        QVERIFY2(contains(evaluated.message(), "not a finite"), evaluated.message().c_str());
        QVERIFY(!generated.ok());
        QCOMPARE(generated.kind(), ErrorKind::Internal);
        QVERIFY2(contains(generated.message(), "not finite"), generated.message().c_str());
    }

    void aRunWhoseLastLossIsNoNumberIsNotDone_data()
    {
        QTest::addColumn<int>("steps");
        QTest::addColumn<int>("checkpointEvery");
        QTest::addColumn<QString>("says");
        QTest::addRow("no checkpoint") << 3 << 0 << "nothing of it was saved";
        QTest::addRow("a checkpoint") << 3 << 1 << "The last checkpoint is safe";
        QTest::addRow("five bad steps, no checkpoint") << 20 << 0 << "nothing of it was saved";
    }

    void aRunWhoseLastLossIsNoNumberIsNotDone()
    {
        QFETCH(const int, steps);
        QFETCH(const int, checkpointEvery);
        QFETCH(const QString, says);
        RunRig rig;
        const Model model;
        model.fill("model.layers.0.mlp.down_proj.weight", 3e38F);
        RunSpec spec = rig.spec("not a number");
        spec.modelDir = model.folder.path();
        spec.steps = steps;
        spec.checkpointEvery = checkpointEvery;
        const auto device = smallDevice();

        const Outcome run = rig.train(spec, *device);

        QVERIFY2(run.opened.ok(), run.opened.message().c_str());
        QCOMPARE(run.state, RunState::Failed);
        QCOMPARE(run.ended.kind(), ErrorKind::Internal);
        QVERIFY2(contains(run.ended.message(), says.toStdString()), run.ended.message().c_str());
        QVERIFY(contains(run.ended.message(), "finite"));
        QCOMPARE(rig.row(run.id).status, RunStatus::Failed);
        QVERIFY(!std::filesystem::exists(run.dir / "model"));
    }

    void longRopeFollowsTheTokensAndNotTheRoom()
    {
        const Model model(longRope());
        const auto device = smallDevice();
        const auto roomy = open(model, *device, 64);
        const auto exact = open(model, *device, 16);

        const std::vector<TokenId> tokens = greedy(*roomy, somePrompt(6), 10);

        QCOMPARE(tokens, greedy(*exact, somePrompt(6), 10));
        // Once there are more than 16, all of them turn by the long factors.
        ReadPrompt whole = somePrompt(6);
        whole.tokens.insert(whole.tokens.end(), tokens.begin(), tokens.end());
        const std::vector<TokenId> further = greedy(*roomy, somePrompt(6), 16);
        QCOMPARE(further.size(), std::size_t{16});
        for (std::size_t i = 10; i < further.size(); ++i) {
            const auto fresh =
                open(model, *device, static_cast<std::int64_t>(whole.tokens.size()) + 1);
            QCOMPARE(greedy(*fresh, whole, 1).front(), further[i]);
            whole.tokens.push_back(further[i]);
        }
    }

    void evaluationTakesEachSequenceAsLongAsItIs_data()
    {
        QTest::addColumn<QString>("changes");
        QTest::addRow("longrope") << QString::fromStdString(longRope().dump());
        QTest::addRow("dynamic") << QStringLiteral(R"({"max_position_embeddings": 16,
                 "rope_scaling": {"rope_type": "dynamic", "factor": 4.0}})");
    }

    void evaluationTakesEachSequenceAsLongAsItIs()
    {
        QFETCH(const QString, changes);
        const Model model(json::parse(changes.toStdString()));
        const auto device = smallDevice();
        const auto roomy = open(model, *device, 64);
        std::vector<std::vector<TokenId>> sequences;
        double sum = 0.0;
        std::size_t count = 0;
        for (const int tokens : {9, 40, 16, 17, 64, 3}) {
            sequences.push_back(somePrompt(tokens).tokens);
            const auto exact = open(model, *device, tokens);
            const auto alone = exact->evaluate(setOf({sequences.back()}));
            QVERIFY2(alone.ok(), alone.status().message().c_str());
            const EvalResult one = Result(alone).value();
            sum += one.loss * static_cast<double>(one.tokens);
            count += static_cast<std::size_t>(one.tokens);
        }

        const auto together = roomy->evaluate(setOf(sequences));

        QVERIFY2(together.ok(), together.status().message().c_str());
        const double want = sum / static_cast<double>(count);
        const double found = Result(together).value().loss;
        QVERIFY2(std::abs(found - want) < 1e-6 * want, qPrintable(QString::number(found - want)));
    }

    void scoresAreOfTheTokensThatAreThere()
    {
        const Model model(longRope());
        const auto device = smallDevice();
        const auto roomy = open(model, *device, 64);
        const ReadPrompt prompt = somePrompt(6);
        std::vector<TokenId> pair = prompt.tokens;
        const std::vector<TokenId> answer = greedy(*roomy, prompt, 20); // over the 16 tokens
        pair.insert(pair.end(), answer.begin(), answer.end());
        TokenSet set;
        std::vector<std::uint8_t> trained(pair.size(), 0);
        std::fill(trained.begin() + 6, trained.end(), std::uint8_t{1});
        QVERIFY(set.sequences.add(pair, trained).ok());

        const auto score = roomy->scoreAnswers(set, 1);

        QVERIFY2(score.ok(), score.status().message().c_str());
        QCOMPARE(Result(score).value().right, 1);
    }

    // An adapter on the model says what the model does with the adapter's product in its weights.
    void anAdapterIsAddedToTheModel()
    {
        const Model model;
        const auto device = smallDevice();
        const ModelConfig config = readModelConfig(model.folder.path()).value();
        AdapterSettings settings = downProjections();
        settings.layers = {0};
        const ParamTable whole = buildParamTable(config);
        const ParamTable table = adapterTable(whole, settings).value();
        const Folder folder;
        const std::string fresh = folder.path("fresh");
        QVERIFY(
            savePeft(fresh, {settings, "base"}, table, *initialAdapter(table, 3), ExportType::F32)
                .ok());
        const auto constant =
            madeWeights(table, [](const NamedTensor&, std::int64_t, const MasterView& out) {
                std::fill(out.high.begin(), out.high.end(), highHalf(0.125F));
                std::fill(out.low.begin(), out.low.end(), lowHalf(0.125F));
            });
        const std::string trained = folder.path("trained");
        QVERIFY(savePeft(trained, {settings, "base"}, table, *constant, ExportType::F32).ok());
        const TokenSet set = setOf({somePrompt(12).tokens, somePrompt(7).tokens});
        const auto lossWith = [&](const std::string& adapter) {
            InferenceOptions options;
            options.adapter = adapter;
            auto opened = InferenceModel::load(model.folder.path(), options, *device);
            if (!opened.ok())
                qFatal("%s", opened.status().message().c_str());
            return opened.value()->evaluate(set).value().loss;
        };
        const double plain = lossWith({});

        QCOMPARE(lossWith(fresh), plain);
        const double added = lossWith(trained);
        QVERIFY(std::abs(added - plain) > 1e-3);
        // Every element of the product is 8 * 2 / 64: alpha / rank is 8.
        model.add("model.layers.0.mlp.down_proj.weight", 8.0F * 2.0F / 64.0F);
        QVERIFY(std::abs(lossWith({}) - added) < 1e-5);
    }

    // Weights that an adapter has in place of the model's own go with it.
    void aModelIsItselfAgainWithoutItsAdapter_data()
    {
        QTest::addColumn<bool>("rows");
        QTest::newRow("rows of the embedding") << true;
        QTest::newRow("modules that are trained whole") << false;
    }

    void aModelIsItselfAgainWithoutItsAdapter()
    {
        QFETCH(bool, rows);
        const Model model;
        const auto device = smallDevice();
        const ModelConfig config = readModelConfig(model.folder.path()).value();
        AdapterSettings settings = downProjections();
        if (rows)
            settings.tokens = {somePrompt(12).tokens[3], somePrompt(12).tokens[5]};
        else
            settings.saved = {"embed_tokens", "lm_head"};
        const ParamTable table = adapterTable(buildParamTable(config), settings).value();
        const Folder folder;
        const auto weights = initialWeights(config, table, 3);
        const std::string adapter = folder.path("adapter");
        QVERIFY(savePeft(adapter, {settings, "base"}, table, *weights, ExportType::F32).ok());
        const TokenSet set = setOf({somePrompt(12).tokens, somePrompt(7).tokens});
        const auto plain =
            std::move(InferenceModel::load(model.folder.path(), {}, *device)).value();
        const double want = plain->evaluate(set).value().loss;
        InferenceOptions options;
        options.adapter = adapter;
        options.cache = true;
        options.seqLen = 24;
        const auto adapted =
            std::move(InferenceModel::load(model.folder.path(), options, *device)).value();
        const double with = adapted->evaluate(set).value().loss;
        const auto answer = greedy(*adapted, somePrompt(6), 8);

        QVERIFY(adapted->useAdapter({}).ok());
        QCOMPARE(adapted->evaluate(set).value().loss, want);
        QVERIFY(std::abs(with - want) > 1e-3);
        const auto plainAnswer = greedy(*adapted, somePrompt(6), 8);
        QVERIFY(adapted->useAdapter(adapter).value());
        QCOMPARE(adapted->evaluate(set).value().loss, with);
        QCOMPARE(greedy(*adapted, somePrompt(6), 8), answer);
        QVERIFY(rows || answer != plainAnswer);
    }

    void anAdapterOfAnotherModelIsRefused()
    {
        const Model model;
        const auto device = smallDevice();
        const Folder folder;
        AdapterSettings settings;
        settings.rank = 2;
        ModelConfig other = readModelConfig(model.folder.path()).value();
        other.layers += 1;
        const ParamTable table = adapterTable(buildParamTable(other), settings).value();
        const std::string adapter = folder.path("other");
        QVERIFY(savePeft(
            adapter, {settings, "other"}, table, *initialAdapter(table, 3), ExportType::F32)
                    .ok());
        InferenceOptions options;
        options.adapter = adapter;

        const Status refused = InferenceModel::load(model.folder.path(), options, *device).status();

        QCOMPARE(refused.kind(), ErrorKind::InvalidArgument);
        QVERIFY2(
            contains(refused.message(), "more tensors than expected"), refused.message().c_str());
    }

    void stretchedPositionsReachAsFarAsInTraining()
    {
        const Model model(json::object({{"max_position_embeddings", 16},
            {"rope_scaling", {{"rope_type", "dynamic"}, {"factor", 4.0}}}}));
        const auto device = smallDevice();
        const ModelConfig config = readModelConfig(model.folder.path()).value();
        QCOMPARE(config.longestSequence(), std::int64_t{64});
        const auto opened = open(model, *device, roomFor(30, config.longestSequence()));

        QCOMPARE(greedy(*opened, somePrompt(20), 10).size(), std::size_t{10});
    }
};

MR_TEST(TestInference)

} // namespace mr::test::tst_inference

#include "tst_inference.moc"
