// The sampler's four numbers, micro-batches laid out for the ops, and the thread that makes them.

#include "core/data/batch_stream.h"
#include "support/heap_counter.h"
#include "support/test_room.h"

#include <QtTest>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <map>
#include <set>
#include <thread>

namespace mr::test::tst_batch_stream {

namespace {

// `lengths[i]` tokens 100 i, 100 i + 1, ...; every third token is not trained.
TokenSet makeSet(const std::vector<std::size_t>& lengths)
{
    TokenSet set;
    for (std::size_t i = 0; i < lengths.size(); ++i) {
        TokenSequence sequence;
        for (std::size_t t = 0; t < lengths[i]; ++t) {
            sequence.tokens.push_back(static_cast<TokenId>(100 * i + t));
            sequence.trained.push_back(t % 3 == 0 ? 0 : 1);
        }
        if (!set.sequences.add(sequence.tokens, sequence.trained).ok())
            qFatal("a set in memory");
    }
    return set;
}

std::vector<std::int64_t> draw(Sampler& sampler, std::size_t count)
{
    std::vector<std::int64_t> out(count);
    for (std::int64_t& value : out)
        value = sampler.next();
    return out;
}

bool same(const StepBatch& a, const StepBatch& b)
{
    const auto equal = [](const MicroBatchData& x, const MicroBatchData& y) {
        return x.ids == y.ids && x.targets == y.targets && x.positions == y.positions &&
               x.visibleFrom == y.visibleFrom && x.order == y.order;
    };
    return a.tokens == b.tokens && a.trainedTokens == b.trainedTokens &&
           std::equal(a.micros.begin(), a.micros.end(), b.micros.begin(), b.micros.end(), equal);
}

// In rows of 8 places.
TokenSet packedSet(const std::vector<std::size_t>& lengths)
{
    TokenSet set = makeSet(lengths);
    set.packing = PackedRows::pack(set.sequences, 8);
    return set;
}

void packedOrNot()
{
    QTest::addColumn<bool>("packed");
    QTest::newRow("a sequence a row") << false;
    QTest::newRow("packed") << true;
}

StepBatch nextOrFail(BatchStream& stream)
{
    StepBatch step;
    if (const Status status = stream.next(step); !status.ok())
        qFatal("%s", status.message().c_str());
    return step;
}

} // namespace

class TstBatchStream : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void everyEpochVisitsEverySequenceOnceInANewOrder();
    void ordersDependOnTheSeedAndNothingElse();
    void ordersAreUniform();
    void aSamplerContinuesFromItsFourNumbers();
    void rowsAreShiftedOnceAndStandAlone();
    void packedSequencesCountFromZeroAndSeeThemselvesAlone();
    void packedStepsHaveEverySequenceOnceAnEpoch();
    void orderIsAStableSortOfTheIds();
    void missingSequencesArePadding();
    void stepsKnowTheirTrainedTokens();
    void aStreamContinuesFromTheStateOfAStep_data() { packedOrNot(); }
    void aStreamContinuesFromTheStateOfAStep();
    void aRunningStreamAllocatesNothing_data() { packedOrNot(); }
    void aRunningStreamAllocatesNothing();
    void closingWakesAWaiter();
    void closingWithReadyStepsJoins();
    void anEmptySetIsAnError();
};

void TstBatchStream::everyEpochVisitsEverySequenceOnceInANewOrder()
{
    Sampler sampler({5, 0, 0, 50});
    const std::vector<std::int64_t> first = draw(sampler, 50);
    const std::vector<std::int64_t> second = draw(sampler, 50);

    QCOMPARE(std::set<std::int64_t>(first.begin(), first.end()).size(), 50U);
    QCOMPARE(std::set<std::int64_t>(second.begin(), second.end()).size(), 50U);
    QVERIFY(first != second);
    QVERIFY(!std::is_sorted(first.begin(), first.end()));
    QCOMPARE(sampler.state().epoch, 1U);
    QCOMPARE(sampler.state().position, 50U);
}

void TstBatchStream::ordersDependOnTheSeedAndNothingElse()
{
    Sampler a({5, 0, 0, 50});
    Sampler b({5, 0, 0, 50});
    Sampler c({6, 0, 0, 50});
    const std::vector<std::int64_t> expected = draw(a, 120);
    QCOMPARE(draw(b, 120), expected);
    QVERIFY(draw(c, 120) != expected);
}

void TstBatchStream::ordersAreUniform()
{
    // 3! orders over 6000 epochs: 1000 each, standard deviation sqrt(6000 * 1/6 * 5/6) = 28.9; five
    // of them are allowed.
    Sampler sampler({1, 0, 0, 3});
    std::map<std::vector<std::int64_t>, int> seen;
    for (int epoch = 0; epoch < 6000; ++epoch)
        ++seen[draw(sampler, 3)];
    QCOMPARE(seen.size(), 6U);
    for (const auto& [order, count] : seen)
        QVERIFY(std::abs(count - 1000) < 145);
}

void TstBatchStream::aSamplerContinuesFromItsFourNumbers()
{
    Sampler whole({9, 0, 0, 7});
    const std::vector<std::int64_t> expected = draw(whole, 40);
    for (std::size_t stop : {0U, 3U, 7U, 8U, 20U}) {
        Sampler before({9, 0, 0, 7});
        draw(before, stop);
        Sampler after(before.state());
        const std::vector<std::int64_t> rest = draw(after, 40 - stop);
        QVERIFY(std::equal(
            rest.begin(), rest.end(), expected.begin() + static_cast<std::ptrdiff_t>(stop)));
    }
}

void TstBatchStream::rowsAreShiftedOnceAndStandAlone()
{
    const TokenSet set = makeSet({5, 3});
    const std::array<std::int64_t, 2> sequences{1, 0};
    TokenSequence scratch;
    MicroBatchData got;

    QVERIFY(readMicroBatch(set, sequences, {4, 2, 1}, scratch, got).ok());

    using Row = std::vector<std::int32_t>;
    QCOMPARE(got.ids, (Row{100, 101, 0, 0, 0, 1, 2, 3}));
    QCOMPARE(got.targets, (Row{101, 102, -1, -1, 1, 2, -1, 4}));
    QCOMPARE(got.positions, (Row{0, 1, 0, 0, 0, 1, 2, 3}));
    QCOMPARE(got.visibleFrom, (Row{0, 0, 2, 3, 4, 4, 4, 4}));
}

void TstBatchStream::packedSequencesCountFromZeroAndSeeThemselvesAlone()
{
    // Inputs: 4, 2, 1 and 8 places. The first row is the long one's.
    const TokenSet set = packedSet({5, 3, 2, 9});
    TokenSequence scratch;
    MicroBatchData got;

    QVERIFY(readMicroBatch(set, std::array<std::int64_t, 2>{1, 0}, {8, 2, 1}, scratch, got).ok());

    using Row = std::vector<std::int32_t>;
    QCOMPARE(set.batchRows(), 2);
    QCOMPARE(got.ids, (Row{0, 1, 2, 3, 100, 101, 200, 0, 300, 301, 302, 303, 304, 305, 306, 307}));
    // Untrained targets stay so, and nothing predicts the first token of the next sequence.
    QCOMPARE(
        got.targets, (Row{1, 2, -1, 4, 101, 102, 201, -1, 301, 302, -1, 304, 305, -1, 307, 308}));
    QCOMPARE(got.positions, (Row{0, 1, 2, 3, 0, 1, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7}));
    QCOMPARE(got.visibleFrom, (Row{0, 0, 0, 0, 4, 4, 6, 7, 8, 8, 8, 8, 8, 8, 8, 8}));
}

void TstBatchStream::packedStepsHaveEverySequenceOnceAnEpoch()
{
    const std::vector<std::size_t> lengths{5, 3, 9, 2, 7, 4, 4, 6, 8, 2, 3};
    const TokenSet set = packedSet(lengths);
    const auto rows = static_cast<std::size_t>(set.batchRows());
    QVERIFY(rows < lengths.size());
    const auto stream = BatchStream::start(set, {8, 1, 1}, {3, 0, 0, 0});
    std::int64_t all = 0;
    for (const std::size_t length : lengths)
        all += static_cast<std::int64_t>(length) - 1;
    for (std::uint64_t epoch = 0; epoch < 3; ++epoch) {
        std::multiset<std::int32_t> firsts;
        std::int64_t tokens = 0;
        StepBatch step;
        for (std::size_t i = 0; i < rows; ++i) {
            step = nextOrFail(*stream);
            tokens += step.tokens;
            const MicroBatchData& micro = step.micros[0];
            for (std::size_t t = 0; t < 8; ++t)
                if (micro.visibleFrom[t] == static_cast<std::int32_t>(t) && micro.ids[t] % 100 == 0)
                    firsts.insert(micro.ids[t]);
        }
        QCOMPARE(tokens, all);
        for (std::size_t i = 1; i < lengths.size(); ++i) // 0 is also padding
            QCOMPARE(firsts.count(static_cast<std::int32_t>(100 * i)), 1U);
        QCOMPARE(step.after.epoch, epoch);
        QCOMPARE(step.after.position, std::uint64_t{rows});
        QCOMPARE(step.after.count, std::uint64_t{rows});
    }
}

void TstBatchStream::orderIsAStableSortOfTheIds()
{
    std::array<TokenSequence, 1> sequences;
    std::uint32_t noise = 1;
    for (int t = 0; t < 257; ++t) {
        noise = noise * 1664525U + 1013904223U;
        sequences[0].tokens.push_back(static_cast<TokenId>(noise >> 28));
        sequences[0].trained.push_back(1);
    }
    MicroBatchData got;

    fillMicroBatch(sequences, {256, 1, 1}, got);

    std::vector<std::int32_t> expected(256);
    for (std::size_t i = 0; i < 256; ++i)
        expected[i] = static_cast<std::int32_t>(i);
    std::stable_sort(expected.begin(), expected.end(), [&](std::int32_t a, std::int32_t b) {
        return got.ids[static_cast<std::size_t>(a)] < got.ids[static_cast<std::size_t>(b)];
    });
    QCOMPARE(got.order, expected);
}

void TstBatchStream::missingSequencesArePadding()
{
    const TokenSet set = makeSet({3});
    TokenSequence scratch;
    MicroBatchData got;
    QVERIFY(readMicroBatch(set, std::array<std::int64_t, 1>{0}, {2, 3, 1}, scratch, got).ok());
    using Row = std::vector<std::int32_t>;
    QCOMPARE(got.targets, (Row{1, 2, -1, -1, -1, -1}));
    QCOMPARE(got.visibleFrom, (Row{0, 0, 2, 3, 4, 5}));
    QVERIFY(readMicroBatch(set, std::array<std::int64_t, 1>{-1}, {2, 3, 1}, scratch, got).ok());
    QCOMPARE(got.targets, Row(6, -1));
    fillMicroBatch({}, {2, 3, 1}, got);
    QCOMPARE(got.targets, Row(6, -1));
}

void TstBatchStream::stepsKnowTheirTrainedTokens()
{
    const TokenSet set = makeSet({5, 3, 9, 2, 7});
    const auto stream = BatchStream::start(set, {8, 2, 3}, {3, 0, 0, 0});
    for (int i = 0; i < 20; ++i) {
        const StepBatch step = nextOrFail(*stream);
        std::int64_t trained = 0;
        QCOMPARE(step.micros.size(), 3U);
        for (const MicroBatchData& micro : step.micros)
            trained += std::count_if(
                micro.targets.begin(), micro.targets.end(), [](std::int32_t t) { return t >= 0; });
        QCOMPARE(step.trainedTokens, trained);
        QVERIFY(step.tokens > trained);
    }
}

void TstBatchStream::aStreamContinuesFromTheStateOfAStep()
{
    QFETCH(bool, packed);
    const TokenSet set = packed ? packedSet({5, 3, 9, 2, 7, 4, 2}) : makeSet({5, 3, 9, 2, 7});
    const BatchShape shape{8, 2, 2};
    const auto whole = BatchStream::start(set, shape, {3, 0, 0, 0});
    std::vector<StepBatch> expected;
    for (int i = 0; i < 10; ++i)
        expected.push_back(nextOrFail(*whole));
    for (const std::size_t stop : {0U, 1U, 4U, 8U}) {
        const auto rest = BatchStream::start(set, shape, expected[stop].after);
        for (std::size_t i = stop + 1; i < expected.size(); ++i)
            QVERIFY(same(nextOrFail(*rest), expected[i]));
    }
    QCOMPARE(expected[0].after.count, packed ? 4U : 5U);
}

void TstBatchStream::aRunningStreamAllocatesNothing()
{
    QFETCH(bool, packed);
    const TokenSet set = packed ? packedSet({5, 3, 9, 2, 7, 4, 2}) : makeSet({5, 3, 9, 2, 7});
    const auto stream = BatchStream::start(set, {8, 2, 3}, {3, 0, 0, 0});
    StepBatch step;
    // Two steps are always under way, so after six the three sets of buffers have all been filled.
    for (int i = 0; i < 6; ++i)
        QVERIFY(stream->next(step).ok());
    const std::uint64_t before = heapCountsOfAllThreads().ours;
    bool ok = true;
    for (int i = 0; i < 200; ++i)
        ok = ok && stream->next(step).ok();
    const std::uint64_t after = heapCountsOfAllThreads().ours;

    QVERIFY(ok);
    QCOMPARE(after, before);
}

void TstBatchStream::closingWakesAWaiter()
{
    const TokenSet set = makeSet({5, 3});
    const auto stream = BatchStream::start(set, {8, 1, 1}, {3, 0, 0, 0});
    std::atomic<int> cancelled{0};
    std::thread reader([&] {
        StepBatch step;
        for (Status status = stream->next(step);; status = stream->next(step)) {
            if (status.ok())
                continue;
            cancelled = status.kind() == ErrorKind::Cancelled ? 1 : -1;
            return;
        }
    });
    stream->close();
    reader.join();
    QCOMPARE(cancelled.load(), 1);
}

void TstBatchStream::closingWithReadyStepsJoins()
{
    const TokenSet set = makeSet({5, 3});
    for (int i = 0; i < 50; ++i) {
        const auto stream = BatchStream::start(set, {8, 1, 1}, {3, 0, 0, 0});
        if (i % 2 == 0)
            stream->close();
    }
}

void TstBatchStream::anEmptySetIsAnError()
{
    const TokenSet set;
    const auto stream = BatchStream::start(set, {8, 1, 1}, {3, 0, 0, 0});
    StepBatch step;
    const Status status = stream->next(step);
    QVERIFY(!status.ok());
    QVERIFY(status.kind() == ErrorKind::InvalidArgument);
    Sampler none({1, 0, 0, 0});
    QCOMPARE(none.next(), -1);
}

MR_TEST(TstBatchStream)

} // namespace mr::test::tst_batch_stream

#include "tst_batch_stream.moc"
