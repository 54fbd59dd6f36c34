// Each load and store that the kernels use: its space, its vector, its type.

#include "gpu/ptx/instruction_table.h"
#include "gpu/ptx/snippet.h"
#include "support/test_room.h"

#include <QObject>
#include <QTest>

#include <fmt/core.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace mr::test::tst_accesses {

using namespace mr::ptx;

namespace {

constexpr std::size_t kSlot = 8; // bytes of `out` for each element

struct Access {
    std::string name;
    std::size_t count = 1;
    std::size_t bytes = 0; // of an element
    bool isSigned = false;
    char letter = 'r'; // of its registers
    std::size_t registerBytes = 4;
};

Access accessOf(const std::string& name)
{
    Access access;
    access.name = name;
    const std::string type = name.substr(name.rfind('.') + 1);
    access.bytes = std::stoul(type.substr(1)) / 8;
    access.isSigned = type[0] == 's';
    if (const std::size_t v = name.find(".v"); v != std::string::npos)
        access.count = static_cast<std::size_t>(name[v + 2] - '0');
    access.registerBytes = std::max<std::size_t>(access.bytes, 2);
    const bool isFloat = type[0] == 'f';
    access.letter = access.registerBytes == 2   ? 'h'
                    : access.registerBytes == 4 ? (isFloat ? 'f' : 'r')
                                                : (isFloat ? 'e' : 'd');
    return access;
}

// %r1, or {%r1, %r2, ...}.
std::string registersOf(const Access& access)
{
    std::string names;
    for (std::size_t i = 0; i < access.count; ++i)
        names += fmt::format("{}%{}{}", i == 0 ? "" : ", ", access.letter, i + 1);
    return access.count == 1 ? names : "{" + names + "}";
}

// Whole registers from or to 8 bytes each.
std::string moves(const Access& access, bool loads)
{
    const char* const type = access.letter == 'h'   ? "u16"
                             : access.letter == 'f' ? "f32"
                             : access.letter == 'r' ? "u32"
                             : access.letter == 'e' ? "f64"
                                                    : "u64";
    std::string body;
    for (std::size_t i = 0; i < access.count; ++i)
        body += loads ? fmt::format("ld.global.{} %{}{}, [%in+{}];\n", type, access.letter, i + 1,
                            kSlot * i)
                      : fmt::format("st.global.{} [%out+{}], %{}{};\n", type, kSlot * i,
                            access.letter, i + 1);
    return body;
}

std::vector<std::byte> pattern()
{
    std::vector<std::byte> bytes(64);
    for (std::size_t i = 0; i < bytes.size(); ++i)
        bytes[i] = static_cast<std::byte>(0x81 + 7 * i);
    return bytes;
}

// One thread runs the body; bytes that it wrote.
std::vector<std::byte> ran(const std::string& body, std::string& why)
{
    Snippet snippet;
    snippet.body = ".local .align 16 .b8 own[64];\n" + body;
    snippet.shared = ".shared .align 16 .b8 sm[64];\n";
    snippet.block = {1, 1, 1};
    std::vector<std::byte> out(64);
    const Status status = runSnippet(snippet, pattern(), out);
    why = status.ok() ? std::string() : status.message();
    return out;
}

// Bits of an element in a register that may be wider.
std::uint64_t extended(const Access& access, const std::byte* from)
{
    std::uint64_t bits = 0;
    std::memcpy(&bits, from, access.bytes);
    const std::size_t width = 8 * access.bytes;
    if (access.isSigned && width < 64 && ((bits >> (width - 1)) & 1U) != 0)
        bits |= ~std::uint64_t{0} << width;
    return access.registerBytes == 8 ? bits : bits & ((1ULL << (8 * access.registerBytes)) - 1);
}

// The name of memory that holds the first 64 bytes of `in`, and what fills it.
std::string spaceOf(const Access& access, std::string& body)
{
    if (access.name.find(".global") != std::string::npos)
        return "%in";
    const bool isShared = access.name.find(".shared") != std::string::npos;
    const char* const name = isShared ? "sm" : "own";
    for (int i = 0; i < 64; i += 8)
        body += fmt::format("ld.global.u64 %d40, [%in+{}];\nst.{}.u64 [{}+{}], %d40;\n", i,
            isShared ? "shared" : "local", name, i);
    return name;
}

} // namespace

class TestAccesses : public QObject
{
    Q_OBJECT

private Q_SLOTS:

    void each_data()
    {
        QTest::addColumn<QString>("name");
        for (const auto& [name, row] : readInstructionTable())
            if (row.unit == "accesses")
                QTest::newRow(name.c_str()) << QString::fromStdString(name);
    }

    void each()
    {
        QFETCH(const QString, name);
        const Access access = accessOf(name.toStdString());
        std::string why;
        if (access.name.starts_with("st."))
            return storesLowBytes(access);
        const bool isParameter = access.name.find(".param") != std::string::npos;
        std::string body;
        // The parameters are the addresses of `in` and `out`.
        const std::string from = isParameter ? "pin" : spaceOf(access, body);
        body += fmt::format("{} {}, [{}];\n", access.name, registersOf(access), from);
        const std::vector<std::byte> out = ran(body + moves(access, false) +
                                                   "st.global.u64 [%out+48], %in;\n"
                                                   "st.global.u64 [%out+56], %out;\n",
            why);
        QVERIFY2(why.empty(), why.c_str());
        const std::vector<std::byte> in = pattern();
        const std::byte* const memory = isParameter ? out.data() + 48 : in.data();
        for (std::size_t i = 0; i < access.count; ++i) {
            std::uint64_t is = 0;
            std::memcpy(&is, out.data() + kSlot * i, access.registerBytes);
            QCOMPARE(is, extended(access, memory + access.bytes * i));
        }
    }

private:
    static void storesLowBytes(const Access& access)
    {
        std::string why;
        std::string body = moves(access, true);
        const bool isGlobal = access.name.find(".global") != std::string::npos;
        const bool isShared = access.name.find(".shared") != std::string::npos;
        const std::string to = isGlobal ? "%out" : isShared ? "sm" : "own";
        body += fmt::format("{} [{}], {};\n", access.name, to, registersOf(access));
        for (std::size_t i = 0; !isGlobal && i < access.count * access.bytes; ++i)
            body += fmt::format("ld.{}.u8 %h40, [{}+{}];\nst.global.u8 [%out+{}], %h40;\n",
                isShared ? "shared" : "local", to, i, i);
        const std::vector<std::byte> out = ran(body, why);
        QVERIFY2(why.empty(), why.c_str());
        const std::vector<std::byte> in = pattern();
        for (std::size_t i = 0; i < access.count; ++i)
            QVERIFY(std::memcmp(
                        out.data() + access.bytes * i, in.data() + kSlot * i, access.bytes) == 0);
    }
};

MR_TEST(TestAccesses)

} // namespace mr::test::tst_accesses

#include "tst_accesses.moc"
