#include "core/store/store_rig.h"
#include "core/telemetry/step_json.h"
#include "support/test_room.h"

#include <QtTest>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

namespace mr::test::tst_step_json {

class TestStepJson : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void stepIsWrittenAsTheCommandLinePromises()
    {
        StepRow row = StoreRig::step(7, 2.5);
        row.wallUs = 1234567;
        row.computeUs = 1234567 - 300;
        QCOMPARE(QString::fromStdString(toJson(row)),
            QString(
                R"({"event":"step","step":7,"loss":2.5,"lr":0.001,"grad_norm":0.5,"tokens":4096,)"
                R"("loss_tokens":4000,"wall_ms":1234.567,"compute_ms":1234.267,"stall_ms":)"
                R"({"h2d":0.100,"d2h":0.050,"host_update":0.040,"disk":0.030,"data":0.060,)"
                R"("other":0.020},"h2d_bytes":11,"d2h_bytes":12,"disk_read_bytes":13,)"
                R"("disk_write_bytes":14,"device_peak_bytes":1007,"host_peak_bytes":2007,)"
                R"("staleness":1})"));
    }

    void stepReadsBackExactly()
    {
        StepRow row = StoreRig::step(7, 0.1 + 0.2);
        row.gradNorm = 1e-300;
        const StepRow back = stepFromJson(toJson(row)).value();
        QCOMPARE(back.loss, row.loss);
        QCOMPARE(back.gradNorm, row.gradNorm);
        QCOMPARE(back.wallUs, row.wallUs);
        QVERIFY(back.stallUs == row.stallUs);
        QCOMPARE(toJson(back), toJson(row));
    }

    void notANumberIsNull()
    {
        StepRow row = StoreRig::step(1, std::numeric_limits<double>::quiet_NaN());
        row.gradNorm = std::numeric_limits<double>::infinity();
        QVERIFY(nlohmann::json::parse(toJson(row))["loss"].is_null());
        QVERIFY(std::isnan(stepFromJson(toJson(row)).value().loss));
        QVERIFY(std::isnan(stepFromJson(toJson(row)).value().gradNorm));
    }

    void hostileLinesAreRefusedWithTheField()
    {
        const std::string good = toJson(StoreRig::step(1, 2.0));
        for (std::size_t cut = 0; cut < good.size(); ++cut)
            QVERIFY(!stepFromJson(std::string_view(good).substr(0, cut)).ok());
        auto json = nlohmann::json::parse(good);
        json["tokens"] = "many";
        QVERIFY(stepFromJson(json.dump()).status().message().find("tokens") != std::string::npos);
        json = nlohmann::json::parse(good);
        json["step"] = std::int64_t{1} << 40;
        QVERIFY(!stepFromJson(json.dump()).ok());
        json = nlohmann::json::parse(good);
        json["stall_ms"]["disk"] = 1e300;
        QVERIFY(stepFromJson(json.dump()).status().message().find("disk") != std::string::npos);
    }

    void messagesAndScalarsReadBack()
    {
        StoreBatch batch;
        const EventRow event{0, 3, 40, EventLevel::Warning, "nan", "a \"quoted\"\nline \xff"};
        QVERIFY(eventFromJson(toJson(event), batch).ok());
        QVERIFY(eventFromJson(toJson("eval_loss", {3, 40, 1.5}), batch).ok());
        QVERIFY(!eventFromJson("{\"event\":\"odd\"}", batch).ok());
        QCOMPARE(batch.events.size(), std::size_t{1});
        QVERIFY(batch.events[0].level == EventLevel::Warning);
        QCOMPARE(batch.events[0].text, std::string("a \"quoted\"\nline \xef\xbf\xbd"));
        QVERIFY(batch.events[0].data.empty());
        const EventRow paused{0, 3, 41, EventLevel::Warning, "paused", "Paused", R"({"step":3})"};
        QVERIFY(eventFromJson(toJson(paused), batch).ok());
        QCOMPARE(batch.events[1].data, paused.data);
        QCOMPARE(batch.scalars[0].metric, std::string("eval_loss"));
        QCOMPARE(batch.scalars[0].row.value, 1.5);
    }

    void aSampleHasWhatIsKnownAndReadsBack()
    {
        MachineSample sample;
        sample.timeMs = 12'003;
        sample[MachineMetric::DevicePower] = 215.5;
        sample[MachineMetric::ProcessResident] = 1.5e9;
        sample[MachineMetric::HostCpu] = std::numeric_limits<double>::quiet_NaN();

        const std::string line = toJson(sample);
        const MachineSample back = sampleFromJson(line).value();

        QCOMPARE(QString::fromStdString(line),
            QString(R"({"event":"sample","time_ms":12003,"device.power":215.5,)"
                    R"("process.resident":1500000000})"));
        QCOMPARE(back.timeMs, sample.timeMs);
        QCOMPARE(back[MachineMetric::DevicePower], std::optional(215.5));
        QCOMPARE(back[MachineMetric::ProcessResident], std::optional(1.5e9));
        QVERIFY(!back[MachineMetric::HostCpu]);
    }

    void aHostileSampleIsRefused()
    {
        for (const char* line : {"", "{", "[]", "{}", R"({"time_ms":"1"})", R"({"time_ms":-1})",
                 R"({"time_ms":9000000000000000000})"})
            QVERIFY2(!sampleFromJson(line).ok(), line);
        // A value that is no number is not known.
        QVERIFY(!sampleFromJson(R"({"time_ms":1,"host.cpu":"9"})").value()[MachineMetric::HostCpu]);
    }
};

MR_TEST(TestStepJson)

} // namespace mr::test::tst_step_json

#include "tst_step_json.moc"
