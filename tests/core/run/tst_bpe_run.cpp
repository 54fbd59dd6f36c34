// A run on a model with a tokenizer.json: trained and saved with it.

// The engine's headers come before those of Qt.
// clang-format off
#include "core/run/run_rig.h"
#include "core/tokenizer/small_bpe.h"
#include "support/test_room.h"
// clang-format on

#include <QtTest>

namespace mr::test::tst_bpe_run {

namespace fs = std::filesystem;

class TestBpeRun : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void aModelWithTokenizerJsonTrains();
};

void TestBpeRun::aModelWithTokenizerJsonTrains()
{
    RunRig rig;
    fs::remove(rig.model.path("tokenizer.model"));
    writeSmallBpe(rig.model);
    const auto device = smallDevice();
    RunSpec spec = rig.spec("bpe");
    spec.seqLen = 60;

    const Outcome run = rig.train(spec, *device);

    QVERIFY2(run.opened.ok(), run.opened.message().c_str());
    QVERIFY2(run.ended.ok(), run.ended.message().c_str());
    const std::vector<StepRow> steps = rig.steps(run.id);
    QCOMPARE(steps.size(), std::size_t{12});
    QVERIFY(steps.back().loss < steps.front().loss - 0.05);
    QVERIFY(!fs::exists(run.dir / "model" / "tokenizer.model"));
    auto saved = Tokenizer::open(run.dir / "model");
    QVERIFY2(saved.ok(), saved.status().message().c_str());
    QVERIFY(saved.value()->kind() == "bpe");
    QCOMPARE(saved.value()->eos(), kSmallBpeEos);
}

MR_TEST(TestBpeRun)

} // namespace mr::test::tst_bpe_run

#include "tst_bpe_run.moc"
