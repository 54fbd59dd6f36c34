// Counters of known patterns of access, and classes of steps.

#include "gpu/ptx/counters.h"
#include "gpu/ptx/decode.h"
#include "gpu/ptx/memory.h"
#include "gpu/ptx/ptx_text.h"
#include "gpu/ptx/snippet.h"
#include "support/test_room.h"

#include <QObject>
#include <QTest>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace mr::test::tst_counters {

using namespace mr::ptx;

namespace {

// One warp; %r1 is the lane, sm 4,096 bytes of shared memory.
Snippet snippetOf(const std::string& body)
{
    Snippet snippet;
    snippet.body = "mov.u32 %r1, %tid.x;\nmov.u32 %r10, sm;\n" + body;
    snippet.shared = ".shared .align 16 .b8 sm[4096];\n";
    return snippet;
}

StepCount counted(const std::string& body)
{
    Counters counters;
    const std::vector<std::byte> in(4096);
    std::vector<std::byte> out(4096);
    const Status status = runSnippet(snippetOf(body), in, out, &counters);
    if (!status.ok())
        qWarning("%s", status.message().c_str());
    return counters.total();
}

// `access` at %d2, which is `bytes` apart from lane to lane.
StepCount global(int bytes, const std::string& access)
{
    return counted(
        "mul.wide.u32 %d1, %r1, " + std::to_string(bytes) + ";\nadd.s64 %d2, %in, %d1;\n" + access);
}

// ... at %r3, in shared memory.
StepCount shared(int bytes, const std::string& access)
{
    return counted(
        "mul.lo.s32 %r2, %r1, " + std::to_string(bytes) + ";\nadd.s32 %r3, %r10, %r2;\n" + access);
}

Program programOf(const std::string& body)
{
    auto module = readPtx(textOf(snippetOf(body)));
    auto program = decode(module.value(), module.value().entries.front());
    return program.ok() ? program.value() : Program();
}

} // namespace

#define SECTORS(count, moved, used)                                                                \
    do {                                                                                           \
        const StepCount what = count;                                                              \
        QCOMPARE(what.sectors, std::uint64_t{moved});                                              \
        QCOMPARE(what.bytesUsed, std::uint64_t{used});                                             \
    } while (false)
#define WAVES(count, all, least)                                                                   \
    do {                                                                                           \
        const StepCount what = count;                                                              \
        QCOMPARE(what.waves, std::uint64_t{all});                                                  \
        QCOMPARE(what.wavesLeast, std::uint64_t{least});                                           \
    } while (false)

class TestCounters : public QObject
{
    Q_OBJECT

private Q_SLOTS:

    void sectorsOfGlobalMemory()
    {
        SECTORS(global(4, "ld.global.u32 %r2, [%d2];"), 4, 128);
        SECTORS(global(4, "ld.global.u16 %h2, [%d2];"), 4, 64);
        SECTORS(global(8, "ld.global.u32 %r2, [%d2];"), 8, 128);
        SECTORS(global(0, "ld.global.u32 %r2, [%d2];"), 1, 4); // all lanes read one word
        SECTORS(global(128, "ld.global.u8 %h2, [%d2];"), 32, 32);
        SECTORS(global(16, "ld.global.v4.u32 {%r2, %r3, %r4, %r5}, [%d2];"), 16, 512);
        SECTORS(global(32, "ld.global.v4.u32 {%r2, %r3, %r4, %r5}, [%d2];"), 32, 512);
        // Side by side, but from the middle of a sector on.
        SECTORS(global(4, "ld.global.u32 %r2, [%d2+16];"), 5, 128);
        SECTORS(counted("mul.wide.u32 %d1, %r1, 4;\nadd.s64 %d2, %out, %d1;\n"
                        "st.global.u32 [%d2], %r1;"),
            4, 128);
    }

    void sectorsOfLanesThatTakePart()
    {
        const std::string half = "setp.lt.u32 %p1, %r1, 16;\n@%p1 ld.global.u32 %r2, [%d2];";
        SECTORS(global(4, half), 2, 64);
        SECTORS(global(4, "setp.gt.u32 %p1, %r1, 99;\n@%p1 ld.global.u32 %r2, [%d2];"), 0, 0);
    }

    void copiesAreSectorsAndWaves()
    {
        const std::string copy = "mul.lo.s32 %r2, %r1, 16;\nadd.s32 %r3, %r10, %r2;\n"
                                 "cp.async.cg.shared.global [%r3], [%d2], 16";
        SECTORS(global(16, copy + ";"), 16, 512);
        WAVES(global(16, copy + ";"), 4, 4);
        // A copy of no bytes fills with zeros: it reads nothing, but writes.
        SECTORS(global(16, copy + ", 0;"), 0, 0);
        WAVES(global(16, copy + ", 0;"), 4, 4);
    }

    void wavesOfSharedMemory()
    {
        const std::string one = "st.shared.u32 [%r3], %r1;";
        WAVES(shared(4, one), 1, 1);
        WAVES(shared(8, one), 2, 1);
        WAVES(shared(12, one), 1, 1); // odd words apart: every bank once
        WAVES(shared(64, one), 16, 1);
        WAVES(shared(128, one), 32, 1);
        // A word goes to all lanes at once.
        WAVES(counted("setp.eq.u32 %p1, %r1, 0;\n@%p1 st.shared.u32 [%r10], %r1;\n"
                      "bar.warp.sync -1;\nld.shared.u32 %r2, [%r10];"),
            2, 2);
        WAVES(shared(2, "st.shared.u16 [%r3], 7;"), 1, 1);
    }

    void wideAccessesTakeAWaveForEach128Bytes()
    {
        WAVES(shared(8, "st.shared.v2.u32 [%r3], {%r1, %r1};"), 2, 2);
        WAVES(shared(16, "st.shared.v4.u32 [%r3], {%r1, %r1, %r1, %r1};"), 4, 4);
        WAVES(shared(32, "st.shared.v4.u32 [%r3], {%r1, %r1, %r1, %r1};"), 8, 4);
    }

    void matricesAskForEightRowsAtOnce()
    {
        // Rows 16 bytes apart lie on different banks, rows 128 bytes apart on the same.
        const std::string fill = "shl.b32 %r2, %r1, 7;\nadd.s32 %r3, %r10, %r2;\n"
                                 "st.shared.v4.u32 [%r3], {%r1, %r1, %r1, %r1};\n";
        const StepCount alone = counted(fill);
        StepCount both =
            counted(fill + "bar.warp.sync -1;\nldmatrix.sync.aligned.m8n8.x4.shared.b16 "
                           "{%r20, %r21, %r22, %r23}, [%r3];");
        QCOMPARE(both.waves - alone.waves, std::uint64_t{32});
        QCOMPARE(both.wavesLeast - alone.wavesLeast, std::uint64_t{4});
        WAVES(shared(16, "st.shared.v4.u32 [%r3], {%r1, %r1, %r1, %r1};\nbar.warp.sync -1;\n"
                         "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r20, %r21, %r22, %r23}, "
                         "[%r3];"),
            8, 8);
    }

    void touchedMemoryCountsOnce()
    {
        alignas(kSectorBytes) std::array<std::byte, 128> bytes = {};
        GlobalMemory memory;
        memory.add(bytes.data(), bytes.size(), "bytes", true);
        memory.beginLaunch();
        QVERIFY(memory.touched().empty());
        const auto begin = reinterpret_cast<std::uint64_t>(bytes.data());
        std::string wrong;
        for (const auto at : std::array<std::uint64_t, 4>{0, 4, 0, 96})
            memory.reach(begin + at, 4, false, Moment{}, wrong);
        memory.reach(begin + 32, 16, true, Moment{}, wrong);
        const TouchedMemory touched = memory.touched().at(0);
        QCOMPARE(touched.bytes, bytes.size());
        QCOMPARE(touched.bytesRead, std::size_t{12});
        QCOMPARE(touched.sectorsRead, std::size_t{2});
        QCOMPARE(touched.bytesWritten, std::size_t{16});
        QCOMPARE(touched.sectorsWritten, std::size_t{1});
    }

    void onlyTheBlocksThatAreAskedForRun()
    {
        Snippet snippet = snippetOf("mov.u32 %r2, %ctaid.x;\nmul.wide.u32 %d1, %r2, 4;\n"
                                    "add.s64 %d2, %out, %d1;\nsetp.eq.u32 %p1, %r1, 0;\n"
                                    "@%p1 st.global.u32 [%d2], 7;");
        snippet.grid = {8, 1, 1};
        snippet.blocks = {1, 6};
        const std::vector<std::byte> in(4);
        std::vector<std::byte> out(32);
        Counters counters;
        QVERIFY(runSnippet(snippet, in, out, &counters).ok());
        for (std::size_t i = 0; i < 8; ++i)
            QCOMPARE(out[4 * i], i == 1 || i == 6 ? std::byte{7} : std::byte{0});
        QCOMPARE(counters.total().sectors, std::uint64_t{2});
    }

    // The lanes of a branch are those that come to it, not those that take it.
    void lanesThatTakePart()
    {
        const StepCount all = counted("add.s32 %r2, %r1, 1;");
        QCOMPARE(all.lanes, 32 * all.times);
        const StepCount some = counted("setp.lt.u32 %p1, %r1, 8;\n@%p1 bra L;\n"
                                       "add.s32 %r2, %r1, 1;\nL:\n");
        QCOMPARE(some.lanes, 32 * (some.times - 1) + 24);
    }

    void classesOfSteps()
    {
        const Program program = programOf(
            "mul.wide.u32 %d1, %r1, 4;\nadd.s64 %d2, %in, %d1;\nld.global.u32 %r2, [%d2];\n"
            "shl.b32 %r3, %r2, 16;\nmov.b32 %f1, %r3;\nadd.f32 %f2, %f1, %f1;\n"
            "ex2.approx.ftz.f32 %f3, %f2;\ncvt.rn.bf16x2.f32 %r5, %f3, %f2;\n"
            "setp.lt.u32 %p1, %r1, 5;\nadd.s64 %d3, %out, %d1;\nst.global.u32 [%d3], %r5;\n"
            "bar.sync 0;");
        using enum StepClass;
        const std::vector<StepClass> want = {Move, Move, Move, Move, Address, Address, Memory,
            Integer, Move, Float, Special, Conversion, Control, Address, Memory, Control, Control};
        QCOMPARE(classesOf(program), want);
    }

    // An addition that the access can do is none.
    void constantsBecomeOffsets()
    {
        const std::string sum = "add.s64 %d2, %in, 64;\nld.global.u32 %r2, [%d2];\n";
        const auto addresses = [](const std::string& body) {
            return std::ranges::count(classesOf(programOf(body)), StepClass::Address);
        };
        QCOMPARE(addresses(sum), 0);
        QCOMPARE(addresses(sum + "add.s64 %d3, %d2, %d2;\nld.global.u32 %r2, [%d3];"), 2);
        QCOMPARE(addresses("mul.wide.u32 %d1, %r1, 4;\nadd.s64 %d2, %in, %d1;\n"
                           "ld.global.u32 %r2, [%d2];"),
            2);
    }

    void addressesAreFollowedThroughHalves()
    {
        const Program program =
            programOf("shl.b32 %r2, %r1, 2;\nmov.b32 %r3, 0;\nmov.b64 %d1, {%r2, %r3};\n"
                      "add.s64 %d2, %in, %d1;\nld.global.u32 %r4, [%d2];");
        const std::vector<StepClass> classes = classesOf(program);
        QCOMPARE(std::ranges::count(classes, StepClass::Address), 2);
    }

    void theHotStepsAreThoseOfTheLoop()
    {
        const std::string body = "mov.u32 %r2, 0;\nL:\nadd.s32 %r2, %r2, 1;\n"
                                 "setp.lt.u32 %p1, %r2, 20;\n@%p1 bra L;\nmov.u32 %r3, 0;\n";
        Counters counters;
        const std::vector<std::byte> in(64);
        std::vector<std::byte> out(64);
        QVERIFY(runSnippet(snippetOf(body), in, out, &counters).ok());
        const Program program = programOf(body);
        const StepRange hot = hotSteps(program, counters);
        QCOMPARE(hot.first, std::size_t{5});
        QCOMPARE(hot.end, std::size_t{8});
        // Rarely run, a loop is not what takes the time.
        for (std::size_t i = hot.first; i < hot.end; ++i)
            counters.steps[i].times = 1;
        QCOMPARE(hotSteps(program, counters).end, program.steps.size());
    }
};

MR_TEST(TestCounters)

} // namespace mr::test::tst_counters

#include "tst_counters.moc"
