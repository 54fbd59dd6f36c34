// Blocks that are freed leave the process.

#include "core/base/heap.h"
#include "support/test_room.h"

#include <QtTest>

#include <unistd.h>

#include <cstddef>
#include <cstring>
#include <fstream>
#include <memory>
#include <thread>
#include <vector>

namespace mr::test::tst_heap {

namespace {

std::size_t residentBytes()
{
    std::size_t all = 0;
    std::size_t resident = 0;
    std::ifstream("/proc/self/statm") >> all >> resident;
    return resident * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

// As opening a run does: large blocks, of which small ones live on.
void useAndFree(std::vector<std::unique_ptr<char[]>>& kept)
{
    constexpr std::size_t kBlock = std::size_t{4} << 20;
    std::vector<std::unique_ptr<char[]>> blocks;
    for (int i = 0; i < 16; ++i) {
        blocks.push_back(std::make_unique<char[]>(kBlock));
        std::memset(blocks.back().get(), 1, kBlock);
        kept.push_back(std::make_unique<char[]>(64));
    }
}

} // namespace

class TestHeap : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void freedBlocksLeaveTheProcess()
    {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
        QSKIP("the sanitizer has a heap of its own");
#endif
        returnFreedMemory();
        std::vector<std::unique_ptr<char[]>> kept;
        const std::size_t before = residentBytes();

        for (int round = 0; round < 3; ++round) {
            useAndFree(kept);
            std::thread(useAndFree, std::ref(kept)).join();
        }

        QVERIFY2(residentBytes() < before + (std::size_t{8} << 20),
            qPrintable(QString::number(residentBytes() - before)));
    }
};

MR_TEST(TestHeap)

} // namespace mr::test::tst_heap

#include "tst_heap.moc"
