// Instructions that move memory or work on a whole warp, against plain loops over what the PTX
// ISA says.

#include "gpu/ptx/instruction_table.h"
#include "gpu/ptx/snippet.h"
#include "support/test_room.h"

#include <QObject>
#include <QTest>

#include <bit>
#include <cstring>
#include <string>

namespace mr::test::tst_warp_instructions {

using namespace mr::ptx;

namespace {

using Words = std::vector<std::uint32_t>;

std::vector<std::byte> bytesOf(const Words& words)
{
    std::vector<std::byte> bytes(words.size() * sizeof(std::uint32_t));
    std::memcpy(bytes.data(), words.data(), bytes.size());
    return bytes;
}

// Runs a body over `in`; returns the words it wrote, none if it failed.
Words ran(const std::string& body, const Words& in, std::size_t words, Freedom freedom = {})
{
    Snippet snippet;
    snippet.body = "mov.u32 %r1, %tid.x;\n" + body;
    snippet.shared = ".shared .align 16 .b8 sm[4096];\n";
    snippet.freedom = freedom;
    std::vector<std::byte> out(words * sizeof(std::uint32_t));
    const Status status = runSnippet(snippet, bytesOf(in), out);
    if (!status.ok()) {
        qWarning("%s", status.message().c_str());
        return {};
    }
    Words result(words);
    std::memcpy(result.data(), out.data(), out.size());
    return result;
}

// Code that puts registers r20, r21, ... at out[lane * count + i].
std::string storeAll(int count)
{
    std::string body =
        "mul.wide.u32 %d50, %r1, " + std::to_string(4 * count) + ";\nadd.s64 %d51, %out, %d50;\n";
    for (int i = 0; i < count; ++i)
        body += "st.global.u32 [%d51+" + std::to_string(4 * i) + "], %r" + std::to_string(20 + i) +
                ";\n";
    return body;
}

// Shared memory = the first 4,096 bytes of `in`.
const std::string kFillShared =
    "mov.u32 %r10, sm;\nmov.u32 %r2, 0;\nF:\nshl.b32 %r3, %r2, 7;\nshl.b32 %r4, %r1, 2;\n"
    "add.s32 %r3, %r3, %r4;\nadd.s32 %r5, %r10, %r3;\nmul.wide.u32 %d1, %r3, 1;\n"
    "add.s64 %d2, %in, %d1;\nld.global.u32 %r6, [%d2];\nst.shared.u32 [%r5], %r6;\n"
    "add.s32 %r2, %r2, 1;\nsetp.lt.u32 %p1, %r2, 32;\n@%p1 bra F;\nbar.sync 0;\n";

std::uint32_t pairOf(float low, float high)
{
    return (std::bit_cast<std::uint32_t>(low) >> 16) |
           (std::bit_cast<std::uint32_t>(high) & 0xffff0000U);
}

} // namespace

class TestWarpInstructions : public QObject
{
    Q_OBJECT

private Q_SLOTS:

    void loadsWidenAsTheirTypeSays()
    {
        const Words in{0xf1e2d3c4, 0x80000001, 0x11223344, 0x7fffffff};
        QCOMPARE(
            ran("ld.global.u8 %h1, [%in+1];\ncvt.u32.u16 %r20, %h1;\n" + storeAll(1), in, 32)[0],
            0xd3U);
        QCOMPARE(
            ran("ld.global.s8 %h1, [%in+1];\ncvt.u32.u16 %r20, %h1;\n" + storeAll(1), in, 32)[0],
            0xffd3U);
        QCOMPARE(
            ran("ld.global.u16 %h1, [%in+2];\ncvt.u32.u16 %r20, %h1;\n" + storeAll(1), in, 32)[0],
            0xf1e2U);
        QCOMPARE(ran("ld.global.s16 %r20, [%in+2];\n" + storeAll(1), in, 32)[0], 0xfffff1e2U);
        QCOMPARE(ran("ld.global.u8 %r20, [%in+3];\n" + storeAll(1), in, 32)[0], 0xf1U);
        QCOMPARE(
            ran("ld.global.s32 %d1, [%in+4];\nshr.u64 %d2, %d1, 32;\ncvt.u32.u64 %r20, %d2;\n" +
                    storeAll(1),
                in, 32)[0],
            0xffffffffU);
        QCOMPARE(
            ran("ld.global.v4.u32 {%r20, %r21, %r22, %r23}, [%in];\n" + storeAll(4), in, 128)[3],
            0x7fffffffU);
        QCOMPARE(ran("ld.global.v2.u32 {_, %r20}, [%in];\n" + storeAll(1), in, 32)[5], 0x80000001U);
        QCOMPARE(ran("ld.global.v4.u8 {%h1, %h2, %h3, %h4}, [%in];\ncvt.u32.u16 %r20, %h4;\n" +
                         storeAll(1),
                     in, 32)[0],
            0xf1U);
    }

    void storesNarrow()
    {
        const std::string eight =
            "mul.wide.u32 %d1, %r1, 4;\nadd.s64 %d2, %out, %d1;\n"
            "mov.u32 %r2, 0;\nst.global.u32 [%d2], %r2;\nmov.u16 %h1, 0x1234;\n";
        QCOMPARE(ran(eight + "st.global.u8 [%d2+1], %h1;", {0}, 32)[31], 0x3400U);
        QCOMPARE(ran(eight + "st.global.u16 [%d2+2], %h1;", {0}, 32)[31], 0x12340000U);
        QCOMPARE(ran("mov.b32 %r2, {%h1, %h2};\nmov.u16 %h1, 1;\nmov.u16 %h2, 2;\nmov.b32 %r20, "
                     "{%h1, %h2};\n" +
                         storeAll(1),
                     {0}, 32)[0],
            0x20001U);
        QCOMPARE(ran("mov.u32 %r2, 0x70005;\nmov.b32 {%h1, %h2}, %r2;\ncvt.u32.u16 %r20, %h2;\n" +
                         storeAll(1),
                     {0}, 32)[0],
            7U);
    }

    void shufflesPickLanes()
    {
        const auto shuffled = [](const std::string& op, const std::string& rest) {
            return ran(
                op + " %r20|%p1, %r1, " + rest + ", -1;\nselp.u32 %r21, 1, 0, %p1;\n" + storeAll(2),
                {0}, 64);
        };
        const Words butterfly = shuffled("shfl.sync.bfly.b32", "5, 31");
        const Words index = shuffled("shfl.sync.idx.b32", "9, 31");
        const Words down = shuffled("shfl.sync.down.b32", "3, 31");
        const Words up = shuffled("shfl.sync.up.b32", "3, 0");
        const Words segments = shuffled("shfl.sync.bfly.b32", "4, 0x1807"); // segments of 8
        const Words outside = shuffled("shfl.sync.bfly.b32", "8, 0x1807");
        for (std::uint32_t lane = 0; lane < 32; ++lane) {
            QCOMPARE(butterfly[2 * lane], lane ^ 5U);
            QCOMPARE(index[2 * lane], 9U);
            QCOMPARE(down[2 * lane], lane + 3 < 32 ? lane + 3 : lane);
            QCOMPARE(down[2 * lane + 1], lane + 3 < 32 ? 1U : 0U);
            QCOMPARE(up[2 * lane], lane >= 3 ? lane - 3 : lane);
            QCOMPARE(up[2 * lane + 1], lane >= 3 ? 1U : 0U);
            QCOMPARE(segments[2 * lane], lane ^ 4U);
            QCOMPARE(outside[2 * lane], (lane & 8U) != 0 ? lane - 8 : lane);
        }
    }

    void branchesPartTheLanes()
    {
        const Words out =
            ran("setp.lt.u32 %p1, %r1, 7;\n@%p1 bra L;\nmov.u32 %r20, 1;\nbra.uni M;\n"
                "L:\nmov.u32 %r20, 2;\nM:\n" +
                    storeAll(1),
                {0}, 32);
        for (std::size_t lane = 0; lane < 32; ++lane)
            QCOMPARE(out[lane], lane < 7 ? 2U : 1U);
    }

    void ballotsAreOfTheMask()
    {
        const Words all =
            ran("setp.lt.u32 %p1, %r1, 5;\nvote.sync.ballot.b32 %r20, %p1, -1;\n" + storeAll(1),
                {0}, 32);
        QCOMPARE(all[17], 31U);
        const Words some =
            ran("mov.u32 %r20, 99;\nsetp.ge.u32 %p2, %r1, 4;\n@%p2 bra L;\n"
                "setp.ne.u32 %p1, %r1, 1;\nvote.sync.ballot.b32 %r20, %p1, 15;\nL:\n" +
                    storeAll(1),
                {0}, 32);
        QCOMPARE(some[2], 13U);
        QCOMPARE(some[4], 99U);
    }

    void matricesLieInRegistersAsTheIsaDraws()
    {
        // Row i of matrix m begins at byte 128 m + 16 i; element e of 16 bits has the value of its
        // place.
        Words in(1024);
        for (std::uint32_t i = 0; i < 1024; ++i)
            in[i] = (2 * i) | ((2 * i + 1) << 16);
        const std::string address = "shl.b32 %r7, %r1, 4;\nadd.s32 %r8, %r10, %r7;\n";
        const Words plain =
            ran(kFillShared + address +
                    "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r20, %r21, %r22, %r23}, [%r8];\n" +
                    storeAll(4),
                in, 128);
        const Words transposed = ran(kFillShared + address +
                                         "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%r20, "
                                         "%r21, %r22, %r23}, [%r8];\n" +
                                         storeAll(4),
            in, 128);
        for (std::uint32_t lane = 0; lane < 32; ++lane)
            for (std::uint32_t matrix = 0; matrix < 4; ++matrix) {
                const auto value = [&](std::uint32_t row, std::uint32_t column) {
                    return 64 * matrix + 8 * row + column;
                };
                const std::uint32_t major = lane / 4;
                const std::uint32_t minor = 2 * (lane % 4);
                QCOMPARE(plain[4 * lane + matrix],
                    value(major, minor) | (value(major, minor + 1) << 16));
                QCOMPARE(transposed[4 * lane + matrix],
                    value(minor, major) | (value(minor + 1, major) << 16));
            }
    }

    void productsOfMatrices_data()
    {
        QTest::addColumn<bool>("truncates");
        QTest::addColumn<bool>("descending");
        for (const bool truncates : {false, true})
            for (const bool descending : {false, true})
                QTest::addRow("%d %d", truncates, descending) << truncates << descending;
    }

    // Small whole numbers: every order and rounding of the sum gives the same.
    void productsOfMatrices()
    {
        QFETCH(const bool, truncates);
        QFETCH(const bool, descending);
        const auto a = [](int row, int k) { return static_cast<float>((3 * row + 5 * k) % 7 - 3); };
        const auto b = [](int k, int column) {
            return static_cast<float>((2 * k + 9 * column) % 11 - 5);
        };
        const auto c = [](int row, int column) { return static_cast<float>(row - 2 * column); };
        Words in(32 * 10);
        for (int lane = 0; lane < 32; ++lane) {
            const int g = lane / 4;
            const int t = 2 * (lane % 4);
            Words::iterator at = in.begin() + 10 * lane;
            for (const auto& [row, k] : {std::pair{g, t}, {g + 8, t}, {g, t + 8}, {g + 8, t + 8}})
                *at++ = pairOf(a(row, k), a(row, k + 1));
            for (const int k : {t, t + 8})
                *at++ = pairOf(b(k, g), b(k + 1, g));
            for (const auto& [row, column] :
                {std::pair{g, t}, {g, t + 1}, {g + 8, t}, {g + 8, t + 1}})
                *at++ = std::bit_cast<std::uint32_t>(c(row, column));
        }
        std::string body = "mul.wide.u32 %d1, %r1, 40;\nadd.s64 %d2, %in, %d1;\n";
        for (int i = 0; i < 10; ++i)
            body += "ld.global.u32 %" + std::string(i < 6 ? "r" : "f") + std::to_string(30 + i) +
                    ", [%d2+" + std::to_string(4 * i) + "];\n";
        body += "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%f20, %f21, %f22, %f23}, "
                "{%r30, %r31, %r32, %r33}, {%r34, %r35}, {%f36, %f37, %f38, %f39};\n";
        for (int i = 0; i < 4; ++i)
            body += "mov.b32 %r" + std::to_string(20 + i) + ", %f" + std::to_string(20 + i) + ";\n";
        Freedom freedom;
        freedom.truncatesProducts = truncates;
        freedom.descendingProducts = descending;
        const Words out = ran(body + storeAll(4), in, 128, freedom);
        for (int lane = 0; lane < 32; ++lane)
            for (int i = 0; i < 4; ++i) {
                const int row = lane / 4 + (i < 2 ? 0 : 8);
                const int column = 2 * (lane % 4) + i % 2;
                float sum = c(row, column);
                for (int k = 0; k < 16; ++k)
                    sum += a(row, k) * b(k, column);
                QCOMPARE(std::bit_cast<float>(out[static_cast<std::size_t>(4 * lane + i)]), sum);
            }
    }
};

MR_TEST(TestWarpInstructions)

} // namespace mr::test::tst_warp_instructions

#include "tst_warp_instructions.moc"
