#include "text/svg_icon.h"

#include <QFile>
#include <QGuiApplication>
#include <QIconEngine>
#include <QPainter>
#include <QPalette>
#include <QPixmap>
#include <QSvgRenderer>

// Outside any namespace, as the macro demands; a static library's resources are not found without.
static void initIconResource()
{
    Q_INIT_RESOURCE(millrace);
}

namespace mr::ui {

namespace {

QByteArray svgText(const QString& name, const QColor& color)
{
    static const bool ready = (initIconResource(), true);
    Q_UNUSED(ready)
    QFile file(QStringLiteral(":/icons/%1.svg").arg(name));
    if (!file.open(QIODevice::ReadOnly))
        return {};
    return file.readAll().replace("#000000", color.name().toLatin1());
}

void paintSvg(QPainter* painter, const QRectF& rect, const QString& name, const QColor& color)
{
    const QByteArray text = svgText(name, color);
    if (text.isEmpty())
        return;
    QSvgRenderer renderer(text);
    renderer.render(painter, rect);
}

class PaletteIconEngine final : public QIconEngine
{
public:
    explicit PaletteIconEngine(QString name)
        : m_name(std::move(name))
    {
    }

    QIconEngine* clone() const override { return new PaletteIconEngine(*this); }
    QString key() const override { return QStringLiteral("millrace-palette"); }
    bool isNull() override { return false; }

    void paint(QPainter* painter, const QRect& rect, QIcon::Mode mode, QIcon::State) override
    {
        paintSvg(painter, rect, m_name, colorOf(mode));
    }

    QPixmap pixmap(const QSize& size, QIcon::Mode mode, QIcon::State state) override
    {
        QPixmap picture(size);
        picture.fill(Qt::transparent);
        QPainter painter(&picture);
        paint(&painter, QRect(QPoint(), size), mode, state);
        return picture;
    }

private:
    static QColor colorOf(QIcon::Mode mode)
    {
        const QPalette palette = QGuiApplication::palette();
        switch (mode) {
        case QIcon::Disabled:
            return palette.color(QPalette::Disabled, QPalette::WindowText);
        case QIcon::Selected:
            return palette.color(QPalette::HighlightedText);
        case QIcon::Normal:
        case QIcon::Active:
            break;
        }
        return palette.color(QPalette::WindowText);
    }

    QString m_name;
};

} // namespace

QIcon svgIcon(const QString& name)
{
    return QIcon(new PaletteIconEngine(name));
}

QPixmap svgPixmap(const QString& name, const QColor& color, int extent, qreal devicePixelRatio)
{
    const int pixels = qRound(extent * devicePixelRatio);
    QPixmap picture(pixels, pixels);
    picture.fill(Qt::transparent);
    QPainter painter(&picture);
    paintSvg(&painter, QRectF(0, 0, pixels, pixels), name, color);
    painter.end();
    picture.setDevicePixelRatio(devicePixelRatio);
    return picture;
}

QIcon applicationIcon()
{
    QIcon icon;
    for (const int extent : {16, 32, 48, 64, 128, 256})
        icon.addPixmap(svgPixmap(QStringLiteral("millrace"), Qt::black, extent, 1.0));
    return icon;
}

} // namespace mr::ui
