// Runs on devices whose library of matrix products is wrong on purpose: what is found when they
// open, what is done about it, and that it stays so.

#include "core/prove/wrong_products.h"
#include "core/run/run_rig.h"
#include "core/telemetry/run_folder.h"
#include "support/test_room.h"

#include <millrace/planner.h>

#include <QtTest>

#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace mr::test::tst_opening_check {

namespace {

// The gradient of the small model's down projection.
constexpr std::pair<std::int64_t, std::int64_t> kDown{24, 40};

bool has(const std::string& text, const char* words)
{
    if (text.find(words) != std::string::npos)
        return true;
    qWarning("\"%s\" is not in: %s", words, text.c_str());
    return false;
}

std::vector<GradientShape> recordedApart(const Outcome& run)
{
    const NewRun record = readRunRecord(run.dir.string()).value();
    return productVerdictFromJson(record.productsJson).value().apart;
}

} // namespace

class TestOpeningCheck : public QObject
{
    Q_OBJECT

private Q_SLOTS:

    void aDeviceWithAlgorithmsOfItsOwnIsNotChecked()
    {
        RunRig rig;
        const std::unique_ptr<Device> cpu = smallDevice();
        const Outcome run = rig.train(rig.spec("plain"), *cpu);
        QVERIFY2(run.ended.ok(), run.ended.message().c_str());
        QVERIFY(rig.messages(run.id).find("products: ") == std::string::npos);
        QVERIFY(readRunRecord(run.dir.string()).value().productsJson.empty());
    }

    void goodProductsAreRecorded()
    {
        RunRig rig;
        const std::unique_ptr<Device> cpu = smallDevice();
        WrongProducts device(*cpu);
        const Outcome run = rig.train(rig.spec("good"), device);
        QVERIFY2(run.ended.ok(), run.ended.message().c_str());
        QVERIFY(has(rig.messages(run.id), "products: Matrix products of this run: 15 shapes"));
        QVERIFY(recordedApart(run).empty());
        const NewRun record = readRunRecord(run.dir.string()).value();
        QCOMPARE(productVerdictFromJson(record.productsJson).value().checked, 15);
        QCOMPARE(device.inScratch, 0);
    }

    // The run has the bits of one on a good device; only the check saw the wrong ones.
    void gradientsAddedOtherwiseAreAddedApart()
    {
        RunRig rig;
        const std::unique_ptr<Device> cpu = smallDevice();
        const Outcome plain = rig.train(rig.spec("plain"), *cpu);
        WrongProducts device(*cpu);
        device.addsOtherwise = kDown;
        const Outcome run = rig.train(rig.spec("apart"), device);
        QVERIFY2(run.ended.ok(), run.ended.message().c_str());
        QCOMPARE(run.progress.weightsHash, plain.progress.weightsHash);
        QCOMPARE(device.wrongAdditions, 1);
        QCOMPARE(device.inScratch, 12 * 2); // steps, blocks: the second of two micro-batches
        QVERIFY(recordedApart(run) == (std::vector<GradientShape>{{24, 40}}));
        QVERIFY(has(rig.messages(run.id), "products: Matrix products of this run: 15 shapes"));
        QVERIFY(has(rig.messages(run.id), "weights (24 x 40) otherwise than in one addition"));
    }

    void aResumedRunGoesOnAsItWasRecorded()
    {
        RunRig rig;
        const std::unique_ptr<Device> cpu = smallDevice();
        const Outcome plain = rig.train(rig.spec("plain"), *cpu);
        RunSpec spec = rig.spec("resumed");
        spec.checkpointEvery = 5;
        WrongProducts wrong(*cpu);
        wrong.addsOtherwise = kDown;
        const Outcome first = rig.train(spec, wrong, stopAt(5));
        QVERIFY2(first.ended.ok(), first.ended.message().c_str());

        WrongProducts good(*cpu);
        const Outcome second = rig.resume(first.dir.string(), good, {});
        QVERIFY2(second.ended.ok(), second.ended.message().c_str());
        QCOMPARE(good.inScratch, 7 * 2);
        QCOMPARE(second.progress.weightsHash, plain.progress.weightsHash);
        QVERIFY(recordedApart(second) == recordedApart(first));
    }

    void aResumedRunRecordsALaterFinding()
    {
        RunRig rig;
        const std::unique_ptr<Device> cpu = smallDevice();
        RunSpec spec = rig.spec("later");
        spec.checkpointEvery = 5;
        const Outcome first = rig.train(spec, *cpu, stopAt(5));
        WrongProducts wrong(*cpu);
        wrong.addsOtherwise = kDown;
        const Outcome second = rig.resume(first.dir.string(), wrong, {});
        QVERIFY2(second.ended.ok(), second.ended.message().c_str());
        QCOMPARE(wrong.inScratch, 7 * 2);
        QVERIFY(recordedApart(second) == (std::vector<GradientShape>{{24, 40}}));
    }

    void otherBitsTheSecondTimeEndTheRunBeforeItsFirstStep()
    {
        RunRig rig;
        const std::unique_ptr<Device> cpu = smallDevice();
        WrongProducts device(*cpu);
        device.forgetful = 80;
        const Outcome run = rig.train(rig.spec("other"), device);
        QVERIFY(run.opened.kind() == ErrorKind::Internal);
        QVERIFY(has(run.opened.message(), "gate-up, forward (80 x 24 x 80) gave other bits"));
        QVERIFY(!std::filesystem::exists(rig.folder.path("other/run.json")));
    }

    void noRoomForTheScratchIsSaid()
    {
        RunRig rig;
        const std::unique_ptr<Device> cpu = smallDevice();
        WrongProducts device(*cpu);
        device.addsOtherwise = kDown;
        device.refusedTag = "added apart";
        const Outcome run = rig.train(rig.spec("room"), device);
        QVERIFY(run.opened.kind() == ErrorKind::OutOfMemory);
        QVERIFY(has(run.opened.message(), "takes 3.8 KiB of the device's memory"));
        QVERIFY(has(run.opened.message(), "give a larger --device-memory"));
    }

    // The scratch comes first; a plan that no longer fits is made again.
    void theScratchTakesItsRoomFromThePlan()
    {
        RunRig rig;
        const RunSpec spec = rig.spec("again");
        CpuDeviceOptions options;
        const PlanReport plan = planRun(spec).value();
        for (const PlanTier& tier : plan.tiers)
            if (tier.tier == "device")
                options.memoryBytes = static_cast<std::size_t>(tier.totalBytes);
        const std::unique_ptr<Device> cpu = std::move(makeCpuDevice(options)).value();
        const Outcome plain = rig.train(rig.spec("plain"), *cpu);
        WrongProducts device(*cpu);
        device.addsOtherwise = kDown;
        const Outcome run = rig.train(spec, device);
        QVERIFY2(run.ended.ok(), run.ended.message().c_str());
        QVERIFY(has(rig.messages(run.id), "memory_replanned: Out of memory"));
        QVERIFY(device.inScratch > 0);
        QCOMPARE(run.progress.weightsHash, plain.progress.weightsHash);
    }

    void aStrangersRecordIsRefusedByName()
    {
        RunRig rig;
        const std::unique_ptr<Device> cpu = smallDevice();
        RunSpec spec = rig.spec("strange");
        spec.checkpointEvery = 5;
        const Outcome first = rig.train(spec, *cpu, stopAt(5));
        NewRun record = readRunRecord(first.dir.string()).value();
        record.productsJson = R"({"added_apart": [{"out": 1099511627776, "in": 1099511627776}]})";
        QVERIFY(saveRunRecord(first.dir.string(), record).ok());
        const Outcome second = rig.resume(first.dir.string(), *cpu, stopAt(10));
        QVERIFY2(second.ended.ok(), second.ended.message().c_str()); // no shape of this run
        record.productsJson = R"({"added_apart": 1})";
        QVERIFY(saveRunRecord(first.dir.string(), record).ok());
        const Outcome third = rig.resume(first.dir.string(), *cpu, {});
        QVERIFY(third.opened.kind() == ErrorKind::DataCorrupt);
        QVERIFY(has(third.opened.message(), "run.json: products: field \"added_apart\""));
    }
};

MR_TEST(TestOpeningCheck)

} // namespace mr::test::tst_opening_check

#include "tst_opening_check.moc"
