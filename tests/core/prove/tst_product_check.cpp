// The opening check of products: it knows all of a step, finds what is wrong, keeps its limits.

#include "core/device/cpu/cpu_device.h"
#include "core/prove/exact_check.h"
#include "core/prove/product_check.h"
#include "core/prove/wrong_products.h"
#include "support/test_room.h"

#include <QtTest>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace mr::test::tst_product_check {

namespace {

constexpr std::size_t kMemory = std::size_t{64} << 20;

struct Rig {
    std::unique_ptr<Device> cpu = makeCpuDevice(kMemory);
    WrongProducts device{*cpu};
    ProductCheckLimits limits{kMemory, 60'000'000'000, {}};

    Result<ProductVerdict> check(const std::vector<RunProduct>& products)
    {
        return checkProducts(device, products, limits);
    }
};

std::vector<RunProduct> productsOf(const TinyRun& run)
{
    MicroShape micro{run.seqLen, run.microBatch, run.accumulate, run.compute, run.fp8};
    const ParamTable table = PlainRun::tableOf(plainRunSpec(run)).value();
    setAdapterMemory(table, run.dropout, micro);
    return runProducts(run.config, table, micro);
}

struct Lists {
    std::map<WrongProducts::Key, bool> products;
    std::map<WrongProducts::CodeKey, bool> codes;
    std::map<std::pair<WindowShape, DType>, bool> windows;
};

Lists listsOf(const TinyRun& run)
{
    Lists lists;
    for (const RunProduct& p : productsOf(run)) {
        const CodeShape s = codeShapeOf(p);
        if (p.kind == ProductKind::Adapter)
            lists.windows[{p.window, p.result}] = p.mayAddUp;
        else if (p.isFp8)
            lists.codes[{s.m, s.n, s.k, s.a, p.result, p.hasBias}] |= p.mayAddUp;
        else
            lists.products[{p.kind, p.tokens, p.in, p.out, p.result, p.hasBias}] = p.mayAddUp;
    }
    return lists;
}

RunProduct product(ProductKind kind, std::int64_t tokens, std::int64_t in, std::int64_t out)
{
    RunProduct made;
    made.place = "down";
    made.kind = kind;
    made.tokens = tokens;
    made.in = in;
    made.out = out;
    made.compute = DType::F32;
    made.result = DType::F32;
    made.mayAddUp = kind == ProductKind::WeightGradient;
    return made;
}

bool has(const std::string& text, const char* words)
{
    if (text.find(words) != std::string::npos)
        return true;
    qWarning("\"%s\" is not in: %s", words, text.c_str());
    return false;
}

} // namespace

class TestProductCheck : public QObject
{
    Q_OBJECT

private Q_SLOTS:

    void theListHasTheProductsOfAStep_data()
    {
        QTest::addColumn<bool>("tied");
        QTest::addColumn<bool>("biased");
        QTest::addColumn<int>("accumulate");
        QTest::newRow("tied") << true << false << 3;
        QTest::newRow("untied, biases") << false << true << 2;
        QTest::newRow("one micro-batch") << true << true << 1;
    }

    void theListHasTheProductsOfAStep()
    {
        QFETCH(const bool, tied);
        QFETCH(const bool, biased);
        QFETCH(const int, accumulate);
        TinyRun run;
        run.config = tinyConfig(tied);
        run.config.block.qkvBias = run.config.block.attnOutBias = run.config.block.mlpBias = biased;
        run.accumulate = accumulate;
        run.compute = DType::BF16;
        run.steps = 1;
        Rig rig;
        QVERIFY(runTiny(rig.device, run).ok());
        QVERIFY(listsOf(run).products == rig.device.seen);
    }

    void theListHasTheCodeProductsOfAStep_data()
    {
        QTest::addColumn<bool>("biased");
        QTest::addColumn<int>("accumulate");
        QTest::newRow("plain") << false << 3;
        QTest::newRow("one micro-batch, biases") << true << 1;
    }

    // A step in FP8: products of blocks are of codes, those of the head are not.
    void theListHasTheCodeProductsOfAStep()
    {
        QFETCH(const bool, biased);
        QFETCH(const int, accumulate);
        TinyRun run = inFp8({});
        run.config.block.qkvBias = run.config.block.attnOutBias = run.config.block.mlpBias = biased;
        run.accumulate = accumulate;
        run.steps = 1;
        Rig rig;
        QVERIFY(runTiny(rig.device, run).ok());
        const Lists lists = listsOf(run);
        QVERIFY(lists.codes.size() >= 9);
        QVERIFY(lists.codes == rig.device.seenCodes);
        QVERIFY(lists.products == rig.device.seen);
    }

    void theListHasTheProductsBesideFrozenWeights_data()
    {
        QTest::addColumn<QString>("kind");
        QTest::addColumn<double>("dropout");
        QTest::addColumn<int>("accumulate");
        for (const char* kind : {"lora", "dora", "patterns", "fp8"}) {
            QTest::newRow(kind) << QString::fromUtf8(kind) << 0.0 << 3;
            QTest::addRow("%s, dropout, one micro-batch", kind)
                << QString::fromUtf8(kind) << 0.25 << 1;
        }
        for (const char* kind : {"some layers", "head"})
            QTest::newRow(kind) << QString::fromUtf8(kind) << 0.0 << 3;
    }

    // A frozen weight has no gradient, and backward ends at the first group that is trained.
    void theListHasTheProductsBesideFrozenWeights()
    {
        QFETCH(const QString, kind);
        QFETCH(const double, dropout);
        QFETCH(const int, accumulate);
        TinyRun run;
        run.dropout = dropout;
        run.config = tinyConfig(false);
        if (kind == QLatin1String("fp8"))
            run = inFp8(run);
        run.config.layers = 4;
        run.config.block.qkvBias = run.config.block.mlpBias = true;
        run.compute = DType::BF16;
        run.accumulate = accumulate;
        run.steps = 1;
        if (kind == QLatin1String("some layers")) {
            run.layers = {GroupId{3}};
        } else if (kind == QLatin1String("head")) {
            run.layers = {GroupId{5}};
        } else {
            run.adapter = AdapterSettings{};
            run.adapter->rank = 3;
            run.adapter->dora = kind == QLatin1String("dora");
        }
        if (kind == QLatin1String("patterns")) {
            run.adapter->layers = {1, 3};
            run.adapter->targets = {"k_proj", "v_proj", "down_proj"};
            run.adapter->ranks = {{"v_proj", 5.0}};
        }
        Rig rig;
        const auto result = runTiny(rig.device, run);
        QVERIFY2(result.ok(), result.status().message().c_str());
        const Lists lists = listsOf(run);
        QCOMPARE(lists.windows.empty(), !run.adapter);
        QVERIFY(lists.windows == rig.device.seenWindows);
        QVERIFY(lists.codes == rig.device.seenCodes);
        QVERIFY(lists.products == rig.device.seen);
    }

    void productsOfAnAdapterAreChecked()
    {
        TinyRun run;
        run.adapter = AdapterSettings{};
        run.adapter->rank = 3;
        Rig rig;
        rig.device.forgetful = 9; // x A^T of q, k and v
        auto verdict = rig.check(productsOf(run));
        QVERIFY(!verdict.ok());
        QVERIFY(
            has(verdict.status().message(), "product qkv, adapter (40 x 24 x 9) gave other bits"));
    }

    void codeProductsAreChecked()
    {
        TinyRun run = inFp8({});
        Rig rig;
        const std::vector<RunProduct> products = productsOf(run);
        auto good = rig.check(products);
        QVERIFY2(good.ok(), good.status().message().c_str());
        QCOMPARE(good.value().checked, static_cast<int>(products.size()));
        QVERIFY(good.value().isClean());
        rig.device.addsOtherwise = {32, 48}; // down
        auto wrong = rig.check(products);
        QVERIFY2(wrong.ok(), wrong.status().message().c_str());
        QVERIFY(wrong.value().apart == (std::vector<GradientShape>{{32, 48}}));
    }

    // Some 10 GB of logits in F32: neither they nor their gradient are held at once.
    void theHeadIsListedInItsParts()
    {
        TinyRun run;
        run.config.vocab = 60'000'000;
        run.accumulate = 1;
        const MicroShape micro{run.seqLen, run.microBatch, run.accumulate, run.compute};
        const std::int64_t tokens = micro.tokens();
        const std::int64_t chunk = headChunkRows(tokens, run.config.vocab);
        const std::int64_t rows = headProductRows(run.config, micro);
        QVERIFY(chunk < tokens && rows < tokens);
        std::int64_t parts = 0;
        for (const RunProduct& p : productsOf(run)) {
            if (p.out != run.config.vocab)
                continue;
            QVERIFY(p.kind == ProductKind::Forward ? p.tokens <= chunk
                                                   : p.tokens == rows || p.tokens == tokens % rows);
            QCOMPARE(p.mayAddUp, p.kind == ProductKind::WeightGradient);
            parts += p.kind == ProductKind::WeightGradient ? 1 : 0;
        }
        QCOMPARE(parts, tokens % rows == 0 ? 1 : 2);
    }

    void goodProductsPass_data()
    {
        QTest::addColumn<bool>("bf16");
        QTest::addColumn<bool>("adapter");
        for (const bool adapter : {false, true})
            for (const bool bf16 : {false, true})
                QTest::addRow("%s%s", bf16 ? "bf16" : "fp32", adapter ? ", adapter" : "")
                    << bf16 << adapter;
    }

    void goodProductsPass()
    {
        QFETCH(const bool, bf16);
        QFETCH(const bool, adapter);
        TinyRun run;
        run.compute = bf16 ? DType::BF16 : DType::F32;
        if (adapter)
            run.adapter = AdapterSettings{.rank = 3};
        Rig rig;
        const std::vector<RunProduct> products = productsOf(run);
        auto verdict = rig.check(products);
        QVERIFY2(verdict.ok(), verdict.status().message().c_str());
        QCOMPARE(verdict.value().checked, static_cast<int>(products.size()));
        QVERIFY(verdict.value().isClean());
        QVERIFY(has(describe(verdict.value()), "give equal bits each time."));
        QCOMPARE(rig.device.memoryUsage().deviceBytes, std::size_t{0});
    }

    void otherBitsTheSecondTimeAreAnError()
    {
        Rig rig;
        rig.device.forgetful = 80; // gate-up
        auto verdict = rig.check(productsOf({}));
        QVERIFY(!verdict.ok());
        QVERIFY(verdict.status().kind() == ErrorKind::Internal);
        const std::string& said = verdict.status().message();
        QVERIFY(has(said, "product gate-up, forward (40 x 24 x 80) gave other bits"));
        QVERIFY(has(said, rig.device.info().name.c_str()));
        QVERIFY(has(said, "--device cpu"));
    }

    // Large results are compared in pieces, from end to end.
    void theLastElementOfALargeResultCounts()
    {
        Rig rig;
        const RunProduct large = product(ProductKind::Forward, 1'100, 8, 1'001);
        QVERIFY(rig.check({large}).ok());
        rig.device.forgetful = 1'001;
        QVERIFY(!rig.check({large}).ok());
    }

    void gradientsThatAreAddedOtherwiseAreNamed()
    {
        Rig rig;
        rig.device.addsOtherwise = {24, 40}; // down
        auto verdict = rig.check(productsOf({}));
        QVERIFY2(verdict.ok(), verdict.status().message().c_str());
        QVERIFY(verdict.value().apart == (std::vector<GradientShape>{{24, 40}}));
        QVERIFY(!verdict.value().isClean());
        QCOMPARE(scratchBytes(verdict.value()), std::size_t{24 * 40 * 4});
        QVERIFY(has(describe(verdict.value()), "adds gradients of weights (24 x 40) otherwise"));
    }

    void aLargeSumIsComparedInPieces()
    {
        Rig rig;
        const RunProduct large = product(ProductKind::WeightGradient, 8, 1'001, 1'100);
        auto good = rig.check({large});
        QVERIFY(good.ok() && good.value().apart.empty());
        rig.device.addsOtherwise = {1'100, 1'001};
        auto wrong = rig.check({large});
        QVERIFY(wrong.ok() && wrong.value().apart.size() == 1);
    }

    void shapesWithoutTimeAreNamed()
    {
        Rig rig;
        std::int64_t now = 0;
        rig.limits.timeNs = 2'000'000'000;
        rig.limits.clock = [&now] { return now += 300'000'000; };
        const std::vector<RunProduct> products = productsOf({});
        auto verdict = rig.check(products);
        QVERIFY2(verdict.ok(), verdict.status().message().c_str());
        QCOMPARE(verdict.value().checked, 6); // the cheapest
        QCOMPARE(verdict.value().unchecked.size(), products.size() - 6);
        QVERIFY(!verdict.value().isClean());
        QVERIFY(has(describe(verdict.value()),
            "Not checked: qkv, forward (40 x 24 x 48) (no time left); "));
    }

    void shapesWithoutMemoryAreNamed()
    {
        Rig rig;
        const RunProduct small = product(ProductKind::Forward, 8, 8, 8);
        const RunProduct large = product(ProductKind::Forward, 512, 512, 512);
        rig.limits.memoryBytes = small.bytes();
        auto verdict = rig.check({large, small});
        QVERIFY2(verdict.ok(), verdict.status().message().c_str());
        QCOMPARE(verdict.value().checked, 1);
        QVERIFY(has(
            describe(verdict.value()), "Not checked: down, forward (512 x 512 x 512) (no memory"));
        QVERIFY(rig.device.memoryUsage().devicePeakBytes <= small.bytes());
        rig.device.refusedTag = "product check";
        rig.limits.memoryBytes = kMemory;
        verdict = rig.check({large, small});
        QVERIFY2(verdict.ok(), verdict.status().message().c_str());
        QCOMPARE(verdict.value().checked, 0);
        QCOMPARE(verdict.value().unchecked.size(), std::size_t{2});
    }

    void theRecordIsReadBack()
    {
        ProductVerdict verdict;
        verdict.checked = 3;
        verdict.apart = {{24, 40}, {61, 24}};
        verdict.unchecked = {"down (no time left)"};
        auto read = productVerdictFromJson(toJson(verdict));
        QVERIFY(read.ok());
        QCOMPARE(read.value().checked, 3);
        QVERIFY(read.value().apart == verdict.apart);
        QVERIFY(productVerdictFromJson("").value().isEmpty());
        for (const char* wrong : {"[]", "{", R"({"added_apart": 3})",
                 R"({"added_apart": [{"out": 0, "in": 4}]})", R"({"added_apart": [{"out": 4}]})"})
            QVERIFY2(!productVerdictFromJson(wrong).ok(), wrong);
    }
};

MR_TEST(TestProductCheck)

} // namespace mr::test::tst_product_check

#include "tst_product_check.moc"
