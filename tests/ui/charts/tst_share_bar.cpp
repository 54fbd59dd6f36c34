// Pieces of a cell's bar cover its whole width, and nothing that is there disappears.

#include "math/share_bar.h"
#include "support/test_room.h"

#include <QTest>

namespace mr::test::tst_share_bar {

using namespace mr::ui;

class TestShareBar : public QObject
{
    Q_OBJECT

private slots:

    void piecesTouchAndFillTheBar()
    {
        const auto pieces = sharePieces({{1.0, 2.0, 1.0}, 0.0}, {10.0, 0.0, 100.0, 8.0}, 1.0);

        QCOMPARE(pieces.size(), 3);
        QCOMPARE(pieces[0].left(), 10.0);
        QCOMPARE(pieces[1].left(), pieces[0].right());
        QCOMPARE(pieces[2].right(), 110.0);
        QCOMPARE(pieces[1].width(), 50.0);
    }

    void aTinyPartHasOneDevicePixel()
    {
        const auto pieces = sharePieces({{1.0, 1e9}, 0.0}, {0.0, 0.0, 100.0, 8.0}, 2.0);

        QCOMPARE(pieces[0].width(), 0.5);
        QCOMPARE(pieces[1].right(), 100.0);
    }

    void whatIsNotThereHasNoWidth()
    {
        const auto pieces = sharePieces({{0.0, 5.0, 0.0}, 10.0}, {0.0, 0.0, 100.0, 8.0}, 1.0);

        QCOMPARE(pieces[0].width(), 0.0);
        QCOMPARE(pieces[1].width(), 50.0); // half of the whole
        QCOMPARE(pieces[2].width(), 0.0);
    }

    void nothingAtAllIsNoTrouble()
    {
        for (const QRectF& piece : sharePieces({{0.0, 0.0}, 0.0}, {0.0, 0.0, 100.0, 8.0}, 1.0))
            QCOMPARE(piece.width(), 0.0);
    }
};

MR_TEST(TestShareBar)

} // namespace mr::test::tst_share_bar

#include "tst_share_bar.moc"
