// StackedBar: the bytes in a tier, one coloured piece per kind, against its limit.
//
// StackedBarLayout is the arithmetic, StackedBar the painting.
//
// Units  Bytes, as numbers; pixels where named so.

#pragma once

#include <QColor>
#include <QString>
#include <QVector>
#include <QWidget>

namespace mr::ui {

struct BarPiece {
    QString name;
    quint64 bytes = 0;
    QColor color;
};

struct StackedBarLayout {
    struct Span {
        double left = 0.0;
        double width = 0.0;
    };
    QVector<Span> pieces; // as many as were given, left to right
    double limitX = 0.0;  // where the limit stands

    // The bar ends at whichever is larger, the limit or the sum; a limit of 0 means none.
    static StackedBarLayout make(const QVector<BarPiece>& pieces, quint64 limit, double width);
};

class StackedBar final : public QWidget
{
    Q_OBJECT

public:
    explicit StackedBar(QWidget* parent = nullptr);

    void setData(QVector<BarPiece> pieces, quint64 limit);
    void setThin(bool thin); // for the status bar
    void setPlainToolTips(); // the name only: the numbers are not bytes

    QSize sizeHint() const override;
    QSize minimumSizeHint() const override;

protected:
    bool event(QEvent* event) override; // tool tips per piece
    void paintEvent(QPaintEvent* event) override;

private:
    QVector<BarPiece> m_pieces;
    quint64 m_limit = 0;
    bool m_thin = false;
    bool m_plainToolTips = false;
};

} // namespace mr::ui
