// TokenPreview: the first rows of a dataset as the model will see them, one chip per token.
//
// Trained tokens are green and underlined, masked ones grey; hovering shows the id.
// TokenLayout is the arithmetic, TokenPreview the painting.

#pragma once

#include <millrace/library.h>

#include <QFontMetricsF>
#include <QRectF>
#include <QString>
#include <QVector>
#include <QWidget>

#include <vector>

namespace mr::ui {

// The text of a piece with signs for invisible characters: "␣" for a space, "⏎" for a line end.
QString visibleToken(const QString& text);

struct TokenLayout {
    struct Chip {
        QRectF rect;
        int row = 0;
        int token = 0;
    };
    struct Heading {
        QRectF rect;
        int row = 0;
    };
    QVector<Chip> chips;
    QVector<Heading> headings;
    double height = 0.0;

    static TokenLayout make(
        const std::vector<PreviewRow>& rows, const QFontMetricsF& metrics, double width);
};

class TokenPreview final : public QWidget
{
    Q_OBJECT

public:
    explicit TokenPreview(QWidget* parent = nullptr);

    void setRows(std::vector<PreviewRow> rows);
    const std::vector<PreviewRow>& rows() const { return m_rows; }

    QSize sizeHint() const override;
    bool hasHeightForWidth() const override { return true; }
    int heightForWidth(int width) const override;

protected:
    bool event(QEvent* event) override;
    void paintEvent(QPaintEvent* event) override;
    void resizeEvent(QResizeEvent* event) override;
    void changeEvent(QEvent* event) override;

private:
    QString headingText(const PreviewRow& row) const;
    QString chipToolTip(const PreviewToken& token) const;
    void relayout();
    void describe();

    std::vector<PreviewRow> m_rows;
    TokenLayout m_layout;
};

} // namespace mr::ui
