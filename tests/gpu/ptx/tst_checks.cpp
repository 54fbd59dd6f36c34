// Faults that the machine must find, each in a piece of PTX made for it, and beside it the piece
// without the fault.

#include "gpu/ptx/instruction_table.h"
#include "gpu/ptx/snippet.h"
#include "support/test_room.h"

#include <QObject>
#include <QTest>

#include <string>

namespace mr::test::tst_checks {

using namespace mr::ptx;

namespace {

const std::string kThread =
    "mov.u32 %r1, %tid.x;\nmul.wide.u32 %d1, %r1, 4;\n"
    "add.s64 %d2, %in, %d1;\nadd.s64 %d3, %out, %d1;\nshl.b32 %r2, %r1, 2;\n"
    "xor.b32 %r3, %r2, 128;\n"; // the same place of the other warp's
const std::string kShared = ".shared .align 16 .b8 sm[256];\n";
const std::string kToShared =
    "ld.global.u32 %r4, [%d2];\nmov.u32 %r10, sm;\nadd.s32 %r11, %r10, %r2;\n"
    "add.s32 %r12, %r10, %r3;\nst.shared.u32 [%r11], %r4;\n";
const std::string kFromOther = "ld.shared.u32 %r5, [%r12];\nst.global.u32 [%d3], %r5;\n";
// 16 bytes of each of the first 16 threads.
const std::string kCopy = "mov.u32 %r10, sm;\nshl.b32 %r20, %r1, 4;\nadd.s32 %r21, %r10, %r20;\n"
                          "mul.wide.u32 %d20, %r1, 16;\nadd.s64 %d21, %in, %d20;\n"
                          "setp.lt.u32 %p1, %r1, 16;\n"
                          "@%p1 cp.async.cg.shared.global [%r21], [%d21], 16;\n"
                          "cp.async.commit_group;\n";

// Two warps over 256 bytes. Empty if nothing was found.
std::string found(const std::string& body, Snippet snippet = {})
{
    snippet.body = kThread + body;
    if (snippet.shared.empty())
        snippet.shared = kShared;
    snippet.block = {64, 1, 1};
    const std::vector<std::byte> in(256, std::byte{7});
    std::vector<std::byte> out(256);
    const Status status = runSnippet(snippet, in, out);
    return status.ok() ? std::string() : status.message();
}

bool has(const std::string& text, const char* part)
{
    return text.find(part) != std::string::npos;
}

} // namespace

#define FINDS(body, part)                                                                          \
    do {                                                                                           \
        const std::string what = found(body);                                                      \
        QVERIFY2(has(what, part), what.empty() ? "nothing was found" : what.c_str());              \
    } while (false)
#define ACCEPTS(body)                                                                              \
    do {                                                                                           \
        const std::string what = found(body);                                                      \
        QVERIFY2(what.empty(), what.c_str());                                                      \
    } while (false)

class TestChecks : public QObject
{
    Q_OBJECT

private Q_SLOTS:

    void accessesOutsideAndMisaligned()
    {
        ACCEPTS("ld.global.u32 %r4, [%d2];\nst.global.u32 [%d3], %r4;");
        FINDS("ld.global.u32 %r4, [%d2+4];", "byte 256 of in, which has 256");
        FINDS("st.global.u32 [%d3+256], %r1;", "byte 256 of out");
        FINDS("ld.global.u64 %d5, [%d2];", "no multiple of 8");
        FINDS("mov.u32 %r10, sm;\nst.shared.u32 [%r10+256], %r1;", "shared memory, which has 256");
        FINDS("mov.u32 %r10, sm;\nst.shared.u32 [%r10+2], %r1;", "no multiple of 4");
        FINDS("mov.b64 %d5, 64;\nld.global.u32 %r4, [%d5];", "before all allocations");
        ACCEPTS("mov.b64 %d5, pout;\nld.param.u64 %d6, [%d5+-8];\nsetp.eq.s64 %p1, %d6, %in;\n"
                "@!%p1 st.global.u32 [%d3+256], %r1;");
        FINDS("mov.b64 %d5, pin;\nld.param.u64 %d6, [%d5+16];", "byte 16 of 16 of parameters");
    }

    void readsOfWhatNobodyWrote()
    {
        FINDS("mov.u32 %r10, sm;\nld.shared.u32 %r4, [%r10];", "nobody wrote");
        FINDS("ld.global.u32 %r4, [%d3];", "nobody wrote");
        Snippet unwritten;
        unwritten.inWritten = false;
        QVERIFY(has(found("ld.global.u32 %r4, [%d2];", unwritten), "nobody wrote"));
        ACCEPTS(".local .align 8 .b8 own[16];\nmov.b64 %d5, own;\nst.local.u32 [%d5+4], %r1;\n"
                "ld.local.u32 %r4, [%d5+4];");
        FINDS(".local .align 8 .b8 own[16];\nmov.b64 %d5, own;\nst.local.u32 [%d5+4], %r1;\n"
              "ld.local.u64 %d6, [%d5];",
            "local memory at 0: a read of what nobody wrote");
    }

    // Accesses of several sizes to the same bytes.
    void accessesOfOtherSizes()
    {
        const std::string four = "mov.u32 %r10, sm;\nadd.s32 %r11, %r10, %r2;\n";
        const std::string one = "add.s32 %r14, %r10, %r1;\n"; // a byte of each thread
        ACCEPTS(
            four + "st.shared.u32 [%r11], %r1;\nbar.sync 0;\n" + one + "ld.shared.u8 %r5, [%r14];");
        FINDS(four + "st.shared.u32 [%r11], %r1;\n" + one + "ld.shared.u8 %r5, [%r14];", "a race");
        FINDS(four + one +
                  "mov.u16 %h1, 1;\nst.shared.u8 [%r14], %h1;\nbar.sync 0;\n"
                  "ld.shared.u32 %r5, [%r11];",
            "nobody wrote"); // of the second warp
    }

    void launchesWithoutAnEnd()
    {
        Snippet snippet;
        snippet.stepLimit = 10'000;
        QVERIFY(has(found("L:\nbra L;", snippet), "still on its way"));
        QCOMPARE(found("bra L;\nL:\n", snippet), std::string());
    }

    void racesInSharedMemory()
    {
        ACCEPTS(kToShared + "bar.sync 0;\n" + kFromOther);
        FINDS(kToShared + kFromOther, "shared memory at");
        FINDS("mov.u32 %r10, sm;\nst.shared.u32 [%r10], %r1;", "written twice");
        FINDS(kToShared + "bar.sync 0;\n" + kFromOther + "st.shared.u32 [%r11], %r1;", "a race");
        ACCEPTS(
            kToShared + "bar.sync 0;\n" + kFromOther + "bar.sync 0;\nst.shared.u32 [%r11], %r1;");
    }

    // Lanes of a warp are ordered by what brings the warp together, and not by running together.
    void racesWithinAWarp()
    {
        const std::string neighbour = "xor.b32 %r13, %r11, 4;\n";
        const std::string read = "ld.shared.u32 %r5, [%r13];\n";
        ACCEPTS(kToShared + neighbour + "bar.warp.sync -1;\n" + read);
        FINDS(kToShared + neighbour + read, "a race");
    }

    void racesInGlobalMemory()
    {
        FINDS("st.global.u32 [%out], %r1;", "written twice");
        Snippet blocks;
        blocks.grid = {2, 1, 1};
        QVERIFY(has(found("st.global.u32 [%d3], %r1;", blocks), "a race"));
        // A barrier is of one block.
        QVERIFY(has(found("mov.u32 %r9, %ctaid.x;\nsetp.eq.u32 %p1, %r9, 0;\n"
                          "@%p1 st.global.u32 [%d3], %r1;\nbar.sync 0;\n"
                          "@!%p1 ld.global.u32 %r4, [%d3];",
                        blocks),
            "block"));
    }

    void barriersThatDiffer()
    {
        FINDS("setp.lt.u32 %p1, %r1, 7;\n@%p1 bar.sync 0;", "under a condition that differs");
        FINDS("setp.lt.u32 %p1, %r1, 32;\n@%p1 bra L;\nbar.sync 0;\nbra.uni M;\nL:\nbar.sync "
              "0;\nM:\n",
            "another barrier");
        FINDS("setp.lt.u32 %p1, %r1, 32;\n@%p1 ret;\nbar.sync 0;", "never comes to a barrier");
        FINDS("setp.lt.u32 %p1, %r1, 7;\n@%p1 bra L;\nbar.warp.sync -1;\nL:\n", "waits");
        FINDS("setp.lt.u32 %p1, %r1, 7;\n@%p1 ret;\nshfl.sync.bfly.b32 %r4, %r1, 1, 31, -1;",
            "a lane that has left");
    }

    void copiesThatAreNotWaitedFor()
    {
        const std::string wait = "cp.async.wait_group 0;\nbar.sync 0;\n";
        for (const bool late : {false, true}) {
            Snippet snippet;
            snippet.freedom.copiesLate = late;
            QCOMPARE(found(kCopy + wait + "ld.shared.u32 %r4, [%r10];", snippet), std::string());
            QVERIFY(has(found(kCopy + "bar.sync 0;\nld.shared.u32 %r4, [%r10];", snippet),
                "a copy that was not waited for"));
            // Its own bytes are there after the wait, those of others after a barrier too.
            QVERIFY(
                has(found(kCopy + "cp.async.wait_group 0;\nld.shared.u32 %r4, [%r10];", snippet),
                    "shared memory at 0"));
            QVERIFY(
                has(found(kCopy + "cp.async.wait_group 1;\nbar.sync 0;\nld.shared.u32 %r4, [%r10];",
                        snippet),
                    "a copy that was not waited for"));
        }
    }

    void lanesThatGoApartMeetAgain()
    {
        // Lanes below 7 add 1 by another way; then all exchange.
        ACCEPTS(
            "setp.lt.u32 %p1, %r1, 7;\nmov.u32 %r4, %r1;\n@%p1 bra L;\nadd.s32 %r4, %r4, 1;\nL:\n"
            "shfl.sync.bfly.b32 %r5, %r4, 1, 31, -1;\nst.global.u32 [%d3], %r5;");
    }

    void limitsOfALaunch()
    {
        Snippet snippet;
        snippet.body = "";
        snippet.block = {1025, 1, 1};
        std::vector<std::byte> out(8);
        QVERIFY(!runSnippet(snippet, out, out).ok());
    }

    void everyInstructionOfTheTableHasACase()
    {
        const std::string missing = withoutUnitCase("checks", instructionsRun());
        QVERIFY2(missing.empty(), missing.c_str());
    }
};

MR_TEST(TestChecks)

} // namespace mr::test::tst_checks

#include "tst_checks.moc"
