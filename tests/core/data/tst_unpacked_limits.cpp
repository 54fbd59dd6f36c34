// A small file that unpacks to more than a line or a text may have.

#include "core/data/compressed_case.h"
#include "core/data/data_files.h"
#include "core/data/record_reader.h"
#include "support/test_room.h"

namespace mr::test::tst_unpacked_limits {

class TstUnpackedLimits : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void aTextWithoutEndIsTooLong();
};

void TstUnpackedLimits::aTextWithoutEndIsTooLong()
{
    const Folder folder;
    const std::string block = gzip(std::string(std::size_t{16} << 20, 'a'));
    std::string packed;
    for (int i = 0; i < 17; ++i) // 272 MiB in 280 KB
        packed += block;
    RecordOptions options;
    options.format = DataFormat::Text;
    options.split = "<end>";

    const Status status =
        readRecords(folder.write("b.txt", packed), options, [](const Record&) { return Status(); });

    QVERIFY(contains(status.message(), "b.txt, line 1: a text longer than 256 MiB begins here"));
}

MR_TEST(TstUnpackedLimits)

} // namespace mr::test::tst_unpacked_limits

#include "tst_unpacked_limits.moc"
