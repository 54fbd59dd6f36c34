#include "widgets/card.h"

#include "text/theme_colors.h"

#include <QEvent>
#include <QHBoxLayout>
#include <QLabel>
#include <QPainter>
#include <QVBoxLayout>

namespace mr::ui {

namespace {

constexpr qreal kRadius = 8.0;
constexpr int kCardMargin = 16;

class MutedLabel final : public QLabel
{
public:
    explicit MutedLabel(QWidget* parent)
        : QLabel(parent)
    {
        setWordWrap(true);
        recolor();
    }

protected:
    void changeEvent(QEvent* event) override
    {
        QLabel::changeEvent(event);
        if (event->type() == QEvent::PaletteChange && !m_recoloring)
            recolor();
    }

private:
    void recolor()
    {
        // setPalette sends PaletteChange to this very label.
        m_recoloring = true;
        QPalette own;
        own.setColor(QPalette::WindowText, themeColors(parentOrApplication()).muted);
        setPalette(own);
        m_recoloring = false;
    }

    static QPalette parentOrApplication() { return {}; }

    bool m_recoloring = false;
};

} // namespace

Card::Card(QWidget* parent)
    : QFrame(parent)
    , m_title(new QLabel(this))
    , m_header(new QHBoxLayout)
    , m_body(new QVBoxLayout)
{
    QFont font = m_title->font();
    font.setBold(true);
    font.setPointSizeF(font.pointSizeF() * 1.1);
    m_title->setFont(font);
    m_header->addWidget(m_title);
    m_header->addStretch(1);
    m_body->setSpacing(8);

    auto* outer = new QVBoxLayout(this);
    outer->setContentsMargins(kCardMargin, kCardMargin - 4, kCardMargin, kCardMargin);
    outer->setSpacing(10);
    outer->addLayout(m_header);
    outer->addLayout(m_body, 1);
}

void Card::setTitle(const QString& title)
{
    m_title->setText(title);
    setAccessibleName(title);
}

void paintCard(QWidget& widget, const QColor& border)
{
    QPainter painter(&widget);
    painter.setRenderHint(QPainter::Antialiasing);
    painter.setPen(border);
    painter.setBrush(themeColors(widget.palette()).card);
    painter.drawRoundedRect(QRectF(widget.rect()).adjusted(0.5, 0.5, -0.5, -0.5), kRadius, kRadius);
}

void Card::paintEvent(QPaintEvent*)
{
    paintCard(*this, themeColors(palette()).border);
}

QLabel* makeMutedLabel(QWidget* parent)
{
    return new MutedLabel(parent);
}

} // namespace mr::ui
