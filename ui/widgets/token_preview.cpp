#include "widgets/token_preview.h"

#include "text/theme_colors.h"
#include "text/units.h"

#include <QEvent>
#include <QHelpEvent>
#include <QPainter>
#include <QToolTip>

#include <algorithm>

namespace mr::ui {

namespace {

constexpr double kPadding = 4.0;        // inside a chip, left and right
constexpr double kGap = 2.0;            // between chips
constexpr double kLineGap = 4.0;        // between lines of chips
constexpr double kPreviewRowGap = 10.0; // between rows of the dataset
constexpr double kMinWidth = 40.0;      // below, nothing sensible can be laid out
constexpr int kDescribedTokens = 60;    // tokens per row, for screen readers

} // namespace

QString visibleToken(const QString& text)
{
    QString seen = text;
    seen.replace(QChar(0x2581), QChar(0x2423)); // SentencePiece's own mark for a space
    seen.replace(QLatin1Char(' '), QChar(0x2423));
    seen.replace(QLatin1Char('\n'), QChar(0x23CE));
    seen.replace(QLatin1Char('\t'), QChar(0x21E5));
    return seen.isEmpty() ? QStringLiteral("∅") : seen;
}

TokenLayout TokenLayout::make(
    const std::vector<PreviewRow>& rows, const QFontMetricsF& metrics, double width)
{
    TokenLayout layout;
    width = std::max(width, kMinWidth);
    const double line = metrics.height() + 4.0;
    double y = 0.0;
    for (int r = 0; r < static_cast<int>(rows.size()); ++r) {
        layout.headings.push_back({QRectF(0.0, y, width, line), r});
        y += line;
        double x = 0.0;
        const auto& tokens = rows[static_cast<std::size_t>(r)].tokens;
        for (int t = 0; t < static_cast<int>(tokens.size()); ++t) {
            const QString text =
                visibleToken(QString::fromStdString(tokens[static_cast<std::size_t>(t)].text));
            const double chip = std::min(metrics.horizontalAdvance(text) + 2 * kPadding, width);
            if (x > 0.0 && x + chip > width) {
                x = 0.0;
                y += line + kLineGap;
            }
            layout.chips.push_back({QRectF(x, y, chip, line), r, t});
            x += chip + kGap;
        }
        y += line + kPreviewRowGap;
    }
    layout.height = std::max(0.0, y - kPreviewRowGap);
    return layout;
}

TokenPreview::TokenPreview(QWidget* parent)
    : QWidget(parent)
{
    QSizePolicy policy(QSizePolicy::Expanding, QSizePolicy::Minimum);
    policy.setHeightForWidth(true);
    setSizePolicy(policy);
    describe();
}

void TokenPreview::setRows(std::vector<PreviewRow> rows)
{
    m_rows = std::move(rows);
    relayout();
    describe();
}

QSize TokenPreview::sizeHint() const
{
    return {320, heightForWidth(std::max(320, width()))};
}

int TokenPreview::heightForWidth(int width) const
{
    return qCeil(TokenLayout::make(m_rows, QFontMetricsF(font()), width).height);
}

QString TokenPreview::headingText(const PreviewRow& row) const
{
    const auto trained = std::count_if(row.tokens.begin(), row.tokens.end(),
        [](const PreviewToken& token) { return token.trained; });
    const QString text =
        tr("Row %1: %2 tokens, %3 trained")
            .arg(countText(row.row), countText(std::ssize(row.tokens)), countText(trained));
    return row.cut ? tr("%1, cut at the sequence length").arg(text) : text;
}

QString TokenPreview::chipToolTip(const PreviewToken& token) const
{
    const QString text = visibleToken(QString::fromStdString(token.text));
    return token.trained
               ? tr("%1\nToken id %2\nTrained: part of the loss").arg(text).arg(token.id)
               : tr("%1\nToken id %2\nMasked: read, not part of the loss").arg(text).arg(token.id);
}

bool TokenPreview::event(QEvent* event)
{
    if (event->type() != QEvent::ToolTip)
        return QWidget::event(event);
    const auto* help = static_cast<QHelpEvent*>(event);
    const auto hit = std::find_if(m_layout.chips.begin(), m_layout.chips.end(),
        [help](const TokenLayout::Chip& chip) { return chip.rect.contains(help->pos()); });
    if (hit == m_layout.chips.end()) {
        QToolTip::hideText();
        return true;
    }
    const auto& row = m_rows[static_cast<std::size_t>(hit->row)];
    QToolTip::showText(help->globalPos(),
        chipToolTip(row.tokens[static_cast<std::size_t>(hit->token)]), this,
        hit->rect.toAlignedRect());
    return true;
}

void TokenPreview::paintEvent(QPaintEvent* event)
{
    const ThemeColors& colors = themeColors(palette());
    const QRectF seen(event->rect());
    QPainter painter(this);
    painter.setRenderHint(QPainter::Antialiasing);
    painter.setPen(colors.muted);
    for (const auto& heading : m_layout.headings) {
        if (heading.rect.intersects(seen))
            painter.drawText(heading.rect, Qt::AlignLeft | Qt::AlignVCenter,
                headingText(m_rows[static_cast<std::size_t>(heading.row)]));
    }
    for (const auto& chip : m_layout.chips) {
        if (!chip.rect.intersects(seen))
            continue;
        const auto& row = m_rows[static_cast<std::size_t>(chip.row)];
        const PreviewToken& token = row.tokens[static_cast<std::size_t>(chip.token)];
        painter.setPen(Qt::NoPen);
        painter.setBrush(token.trained ? colors.trainedFill : colors.maskedFill);
        painter.drawRoundedRect(chip.rect, 3.0, 3.0);
        if (token.trained)
            painter.fillRect(QRectF(chip.rect.left() + 2.0, chip.rect.bottom() - 2.0,
                                 chip.rect.width() - 4.0, 2.0),
                colors.good);
        painter.setPen(token.trained ? colors.trainedText : colors.maskedText);
        painter.drawText(chip.rect.adjusted(kPadding, 0, 0, 0), Qt::AlignLeft | Qt::AlignVCenter,
            visibleToken(QString::fromStdString(token.text)));
    }
}

void TokenPreview::resizeEvent(QResizeEvent* event)
{
    QWidget::resizeEvent(event);
    if (event->oldSize().width() != width())
        relayout();
}

void TokenPreview::changeEvent(QEvent* event)
{
    QWidget::changeEvent(event);
    if (event->type() == QEvent::LanguageChange)
        describe();
    if (event->type() == QEvent::FontChange)
        relayout();
}

void TokenPreview::relayout()
{
    m_layout = TokenLayout::make(m_rows, QFontMetricsF(font()), width());
    updateGeometry();
    update();
}

void TokenPreview::describe()
{
    setAccessibleName(tr("First rows of the dataset as tokens"));
    QStringList lines;
    for (const PreviewRow& row : m_rows) {
        QString line = headingText(row) + QLatin1String(": ");
        const auto count = std::min<std::size_t>(row.tokens.size(), kDescribedTokens);
        for (std::size_t i = 0; i < count; ++i)
            line += QString::fromStdString(row.tokens[i].text);
        lines << line;
    }
    setAccessibleDescription(lines.join(QLatin1Char('\n')));
}

} // namespace mr::ui
