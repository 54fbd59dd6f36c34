// ScratchFolder: the file system and drive of a folder, from a made-up mount table.

#include "core/base/host_folder.h"
#include "core/tier/scratch_folder.h"
#include "support/test_room.h"

#include <QtTest>

#include <linux/magic.h>

namespace mr::test::tst_scratch_folder {

namespace {

constexpr std::string_view kMounts =
    "22 1 254:0 / / rw,relatime - ext4 /dev/vda rw\n"
    "23 22 0:30 / /dev/shm rw,nosuid - tmpfs tmpfs rw\n"
    "24 22 259:2 / /fast rw,relatime shared:1 - ext4 /dev/nvme0n1p2 rw\n"
    "25 22 8:1 / /slow rw - xfs /dev/sda1 rw\n"
    "26 22 0:40 / /home/a\\040b rw - btrfs /dev/sdb rw\n"
    "27 22 0:41 / /remote rw - nfs4 server:/x rw\n"
    "28 22 0:42 / /ssh rw - fuse.sshfs me@there: rw\n"
    "29 22 0:43 / /ntfs rw - fuseblk /dev/sdc rw\n"
    "30 22 259:3 / /frozen ro,relatime - ext4 /dev/nvme0n1p3 ro\n"
    "31 22 0:44 / /layers rw - overlay overlay rw\n"
    "32 24 259:4 / /fast rw,relatime - xfs /dev/nvme1n1 rw\n"; // hides the /fast above

struct Host {
    Host()
    {
        folder.write("proc/self/mountinfo", kMounts);
        folder.write("sys/dev/block/259:4/uevent", "MAJOR=259\nDEVNAME=nvme1n1\n");
        folder.write("sys/dev/block/259:4/queue/rotational", "0\n");
        folder.write("sys/dev/block/259:4/queue/max_sectors_kb", "512\n");
        // A partition. Its queue is that of its disk, one folder up.
        folder.write("sys/dev/block/8:1/uevent", "DEVNAME=sda1\n");
        folder.write("sys/dev/block/queue/rotational", "1\n");
    }
    ScratchFolder describe(const char* path, std::uint64_t magic, bool writable = true) const
    {
        return describeScratchFolder({path, magic, 1000, writable}, folder.root());
    }
    mr::test::HostFolder folder;
};

} // namespace

class TestScratchFolder : public QObject
{
    Q_OBJECT

private Q_SLOTS:

    void everyPlaceIsToldApart_data()
    {
        QTest::addColumn<QString>("path");
        QTest::addColumn<quint64>("magic");
        QTest::addColumn<int>("place");
        QTest::addColumn<QString>("fileSystem");
        QTest::addColumn<QString>("warning"); // empty: none
        const auto row = [](const char* path, quint64 magic, ScratchPlace place,
                             const char* fileSystem, const char* warning) {
            QTest::newRow(path) << path << magic << static_cast<int>(place) << fileSystem
                                << warning;
        };
        row("/tmp", EXT4_SUPER_MAGIC, ScratchPlace::Good, "ext4", "");
        row("/fast/scratch", 0x58465342, ScratchPlace::Good, "xfs", "");
        row("/fastest", EXT4_SUPER_MAGIC, ScratchPlace::Good, "ext4", ""); // not below /fast
        row("/slow", 0x58465342, ScratchPlace::Good, "xfs", "moving heads");
        row("/dev/shm/x", TMPFS_MAGIC, ScratchPlace::Memory, "tmpfs", "does not save any");
        row("/home/a b/c", BTRFS_SUPER_MAGIC, ScratchPlace::CopyOnWrite, "btrfs", "new place");
        row("/remote", NFS_SUPER_MAGIC, ScratchPlace::Network, "nfs4", "over a network");
        row("/ssh", FUSE_SUPER_MAGIC, ScratchPlace::Network, "fuse.sshfs", "over a network");
        row("/ntfs", FUSE_SUPER_MAGIC, ScratchPlace::Good, "fuseblk", "");
        row("/frozen", EXT4_SUPER_MAGIC, ScratchPlace::ReadOnly, "ext4", "cannot be written");
        row("/layers", OVERLAYFS_SUPER_MAGIC, ScratchPlace::Good, "overlay", "container");
    }
    void everyPlaceIsToldApart()
    {
        QFETCH(QString, path);
        QFETCH(quint64, magic);
        QFETCH(int, place);
        QFETCH(QString, fileSystem);
        QFETCH(QString, warning);
        const Host host;

        const ScratchFolder folder = host.describe(path.toStdString().c_str(), magic);

        QCOMPARE(static_cast<int>(folder.place), place);
        QCOMPARE(QString::fromStdString(folder.fileSystem), fileSystem);
        QCOMPARE(folder.warnings.size(), std::size_t(warning.isEmpty() ? 0 : 1));
        if (!warning.isEmpty())
            QVERIFY(QString::fromStdString(folder.warnings[0]).contains(warning));
    }

    void theDeviceIsNamedAndItsQueueRead()
    {
        const Host host;

        const ScratchFolder fast = host.describe("/fast", 0x58465342);
        const ScratchFolder slow = host.describe("/slow", 0x58465342);
        const ScratchFolder other = host.describe("/remote", NFS_SUPER_MAGIC);

        QCOMPARE(fast.device, std::string("nvme1n1"));
        QCOMPARE(fast.mountPoint, std::string("/fast"));
        QCOMPARE(fast.rotational.value(), false);
        QCOMPARE(fast.requestBytes.value(), std::uint64_t{512 * 1024});
        QCOMPARE(slow.device, std::string("sda1"));
        QCOMPARE(slow.rotational.value(), true);
        QVERIFY(other.device.empty());
        QCOMPARE(other.freeBytes, std::uint64_t{1000});
    }

    void withoutPermissionItIsReadOnly()
    {
        QCOMPARE(Host().describe("/tmp", EXT4_SUPER_MAGIC, false).place, ScratchPlace::ReadOnly);
    }

    // Another machine's tables may be empty; the number of the file system is still known.
    void withoutAMountTableTheNumberTells()
    {
        const mr::test::HostFolder empty;

        const ScratchFolder folder =
            describeScratchFolder({"/x", TMPFS_MAGIC, 5, true}, empty.root());

        QCOMPARE(folder.place, ScratchPlace::Memory);
        QCOMPARE(folder.fileSystem, std::string("tmpfs"));
    }

    void theRealFolderIsLookedAt()
    {
        const QTemporaryDir real;

        auto folder = inspectScratchFolder(real.path().toStdString());
        const auto missing = inspectScratchFolder(real.path().toStdString() + "/not/there");

        QVERIFY(folder.ok());
        QVERIFY(std::move(folder).value().freeBytes > 0);
        QVERIFY(!missing.ok());
        QVERIFY(missing.status().message().find("/not/there") != std::string::npos);
        QVERIFY(!inspectScratchFolder("/proc/self/status").ok());
    }
};

MR_TEST(TestScratchFolder)

} // namespace mr::test::tst_scratch_folder

#include "tst_scratch_folder.moc"
