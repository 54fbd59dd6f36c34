// SequenceStore: the same sequences from memory and from a file, whole and in parts.

#include "core/data/sequence_store.h"
#include "support/test_room.h"

#include <QTemporaryDir>
#include <QTest>

#include <filesystem>
#include <tuple>

namespace mr::test::tst_sequence_store {

namespace {

constexpr std::int64_t kSequences = 300;

// Lengths of 0 to 36, ids that use all their bits, flags of no period.
TokenSequence made(std::int64_t index)
{
    TokenSequence sequence;
    for (std::int64_t t = 0; t < index * 7 % 37; ++t) {
        sequence.tokens.push_back(static_cast<TokenId>(0x7fffffff - 1000 * index - t));
        sequence.trained.push_back((index + t * t) % 3 == 0 ? 1 : 0);
    }
    return sequence;
}

SequenceStore filled(SequenceSpill spill)
{
    SequenceStore store(std::move(spill));
    for (std::int64_t i = 0; i < kSequences; ++i) {
        const TokenSequence sequence = made(i);
        if (const Status added = store.add(sequence.tokens, sequence.trained); !added.ok())
            qFatal("%s", added.message().c_str());
    }
    return store;
}

bool holds(const SequenceStore& store, std::int64_t index, std::int64_t number)
{
    TokenSequence got{{1, 2, 3}, {1}}; // left by an earlier read
    const TokenSequence expected = made(number);
    return store.read(index, got).ok() && got.tokens == expected.tokens &&
           got.trained == expected.trained && store.length(index) == expected.tokens.size();
}

} // namespace

class TstSequenceStore : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void everySequenceComesBackAsItWas_data();
    void everySequenceComesBackAsItWas();
    void partsShareWhatIsStored();
    void theFileHasNoName();
    void aFolderThatCannotBeMadeIsNamed();
};

void TstSequenceStore::everySequenceComesBackAsItWas_data()
{
    QTest::addColumn<std::size_t>("memoryTokens");
    QTest::newRow("in memory") << (std::size_t{1} << 20);
    QTest::newRow("all but the last in a file") << std::size_t{0};
    QTest::newRow("some of both") << std::size_t{3000};
    QTest::newRow("the limit met exactly") << std::size_t{7};
}

void TstSequenceStore::everySequenceComesBackAsItWas()
{
    QFETCH(std::size_t, memoryTokens);
    const QTemporaryDir folder;

    const SequenceStore store = filled({folder.path().toStdString(), memoryTokens});

    std::uint64_t tokens = 0;
    QCOMPARE(store.count(), kSequences);
    for (std::int64_t i = kSequences; i-- > 0;) {
        QVERIFY2(holds(store, i, i), qPrintable(QString::number(i)));
        tokens += store.length(i);
    }
    QCOMPARE(store.tokens(), tokens);
}

void TstSequenceStore::partsShareWhatIsStored()
{
    const QTemporaryDir folder;
    SequenceStore others;
    SequenceStore these;
    {
        const SequenceStore store = filled({folder.path().toStdString(), 3000});
        const std::vector<std::uint32_t> picks{0, 17, 18, 299};
        std::tie(others, these) = store.split(picks);
    }

    QCOMPARE(these.count(), 4);
    QCOMPARE(others.count(), kSequences - 4);
    QVERIFY(holds(these, 1, 17) && holds(these, 3, 299));
    QVERIFY(holds(others, 0, 1) && holds(others, 15, 16) && holds(others, 16, 19));
    QCOMPARE(these.tokens(), these.length(0) + these.length(1) + these.length(2) + these.length(3));
    const SequenceStore first = others.firstOnes(17);
    QCOMPARE(first.count(), 17);
    QVERIFY(holds(first, 16, 19));
    QCOMPARE(others.firstOnes(1000).count(), others.count());
}

void TstSequenceStore::theFileHasNoName()
{
    const QTemporaryDir folder;
    const SequenceStore store = filled({folder.path().toStdString(), 100});
    QVERIFY(std::filesystem::is_empty(folder.path().toStdString()));
    QVERIFY(holds(store, 36, 36));
}

void TstSequenceStore::aFolderThatCannotBeMadeIsNamed()
{
    SequenceStore store({"/proc/nowhere", 0});
    const TokenSequence sequence = made(3);
    QVERIFY(store.add(sequence.tokens, sequence.trained).ok());

    const Status status = store.add(sequence.tokens, sequence.trained);

    QVERIFY(!status.ok());
    QVERIFY2(status.message().find("/proc/nowhere") != std::string::npos, status.message().c_str());
    QVERIFY(status.message().find("XDG_CACHE_HOME") != std::string::npos);
}

MR_TEST(TstSequenceStore)

} // namespace mr::test::tst_sequence_store

#include "tst_sequence_store.moc"
