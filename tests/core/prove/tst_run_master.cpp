// The master of a run: every piece has the bits of the whole, wherever the policy keeps it.

#include "core/device/cpu/cpu_device.h"
#include "core/device/master24.h"
#include "core/prove/exact_check.h"
#include "core/prove/state_of.h"
#include "support/test_room.h"

#include <QtTest>

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <vector>

namespace mr::test::tst_run_master {

namespace {

PlainRunSpec specOf(const char* policy, DType compute, std::map<std::string, std::string> options)
{
    PlainRunSpec spec;
    spec.config = tinyConfig(false);
    spec.micro = {8, 1, 1, compute};
    spec.policy = policy;
    spec.options = std::move(options);
    return spec;
}

// Its embedding is installed in more than one piece.
PlainRunSpec large(PlainRunSpec spec)
{
    spec.config = tinyConfig(true);
    spec.config.vocab = 2 * kMasterPiece / spec.config.hidden;
    return spec;
}

// In pieces of odd lengths, of which few begin where a row does, and in no order.
MasterBuffers inPieces(const ParamTable& table, MasterReader& from)
{
    MasterBuffers out(table, 0x7777);
    std::mt19937 engine(3);
    for (std::size_t g = 0; g < out.high.size(); ++g) {
        const std::size_t length = out.high[g].size() < 100'000 ? 37 : 123'457;
        std::vector<std::size_t> begins;
        for (std::size_t at = 0; at < out.high[g].size(); at += length)
            begins.push_back(at);
        std::shuffle(begins.begin(), begins.end(), engine);
        for (const std::size_t at : begins) {
            const MasterView whole{out.high[g], out.low[g]};
            const MasterView part = whole.part(at, std::min(length, out.high[g].size() - at));
            const auto first = static_cast<std::int64_t>(at);
            if (!from.read(GroupId{static_cast<std::int32_t>(g)}, first, part).ok())
                qFatal("a piece cannot be read");
        }
    }
    return out;
}

bool areSame(const MasterBuffers& a, const MasterBuffers& b)
{
    return a.high == b.high && a.low == b.low;
}

} // namespace

class TestRunMaster : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void initTestCase_data()
    {
        QTest::addColumn<PlainRunSpec>("spec");
        const auto add = [](const char* name, const PlainRunSpec& spec) {
            QTest::newRow(name) << spec;
        };
        add("resident, fp32", specOf("resident", DType::F32, {}));
        add("resident, bf16", specOf("resident", DType::BF16, {}));
        add("zero-offload, fp32", specOf("zero-offload", DType::F32, {}));
        add("streamed, bf16", specOf("streamed", DType::BF16, {}));
        add("zero-offload, compact", specOf("zero-offload", DType::BF16, {{"state", "compact"}}));
        add("zenflow, fp32", specOf("zenflow", DType::F32, {{"urgent", "0.3"}}));
        add("zenflow, compact",
            specOf("zenflow", DType::BF16, {{"urgent", "0.3"}, {"state", "compact"}}));
        add("large, fp32", large(specOf("resident", DType::F32, {})));
        add("large, bf16", large(specOf("zero-offload", DType::BF16, {})));
        // Its columns are copied in more than one piece, too.
        add("large, zenflow", large(specOf("zenflow", DType::F32, {{"urgent", "0.75"}})));
        add("large, compact",
            large(specOf("zenflow", DType::BF16, {{"urgent", "0.75"}, {"state", "compact"}})));
    }

    void init()
    {
        QFETCH_GLOBAL(PlainRunSpec, spec);
        m_device = makeCpuDevice(std::size_t{128} << 20);
        auto run = PlainRun::create(*m_device, spec);
        QVERIFY2(run.ok(), run.status().message().c_str());
        m_run = std::move(run).value();
        const auto weights = initialWeights(spec.config, m_run->table(), 5);
        QVERIFY(installMaster(m_run->executor(), m_run->memory(), *weights).ok());
    }

    void cleanup()
    {
        m_run.reset();
        m_device.reset();
    }

    void piecesOfTheStateAreThoseOfTheWhole()
    {
        const MasterBuffers whole = stateOf(*m_run);
        auto state = stateMaster(m_run->executor(), m_run->memory());
        QVERIFY(state.ok());

        const MasterBuffers pieces = inPieces(m_run->table(), *state.value());

        QVERIFY(areSame(pieces, whole));
    }

    void piecesOfTheWeightsAreThoseOfTheWhole()
    {
        if (!m_run->memory().group(GroupId{1}).weights)
            return; // they stream: nothing but the state has them
        const auto weights = weightsInUse(m_run->executor(), m_run->memory());
        MasterBuffers whole(m_run->table());
        QVERIFY(whole.fill(*weights).ok());

        const MasterBuffers pieces = inPieces(m_run->table(), *weights);

        QVERIFY(areSame(pieces, whole));
        QVERIFY(whole.high == stateOf(*m_run).high); // before any step the host is not ahead
    }

    void highHalvesAloneAreTheSame()
    {
        const MasterBuffers whole = stateOf(*m_run);
        auto state = stateMaster(m_run->executor(), m_run->memory());
        QVERIFY(state.ok());
        for (std::size_t g = 0; g < whole.high.size(); ++g) {
            std::vector<std::uint16_t> high(whole.high[g].size());
            const GroupId id{static_cast<std::int32_t>(g)};

            QVERIFY(state.value()->read(id, 0, {high, {}}).ok());

            QVERIFY(high == whole.high[g]);
        }
    }

    // As the host's codec rounds it; columns of the device are not rounded.
    void theStateIsWhatWasInstalled()
    {
        QFETCH_GLOBAL(PlainRunSpec, spec);
        MasterBuffers installed(m_run->table());
        QVERIFY(installed.fill(*initialWeights(spec.config, m_run->table(), 5)).ok());
        MasterBuffers expected(m_run->table());
        expected.high = installed.high;
        expected.low = installed.low;
        if (m_run->memory().stateCodec() == StateCodec::Compact)
            for (std::size_t g = 0; g < expected.high.size(); ++g)
                round(installed, g, expected);

        const MasterBuffers state = stateOf(*m_run);

        QVERIFY(areSame(state, expected));
    }

private:
    void round(const MasterBuffers& from, std::size_t g, MasterBuffers& to) const
    {
        std::vector<std::int8_t> remainder(from.high[g].size());
        encodeMaster24(from.high[g], from.low[g], to.high[g], remainder);
        decodeMaster24(to.high[g], remainder, to.low[g]);
        if (!m_run->memory().window)
            return;
        for (const WeightCut& weight : m_run->memory().window->layout().groups[g].weights)
            for (std::int64_t i = 0; i < weight.rows * weight.cols; ++i)
                if (i % weight.cols < weight.urgent) { // the first ones, before any was chosen
                    const auto at = static_cast<std::size_t>(weight.first + i);
                    to.high[g][at] = from.high[g][at];
                    to.low[g][at] = from.low[g][at];
                }
    }

    std::unique_ptr<Device> m_device;
    std::unique_ptr<PlainRun> m_run;
};

MR_TEST(TestRunMaster)

} // namespace mr::test::tst_run_master

#include "tst_run_master.moc"
