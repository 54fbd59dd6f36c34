// icon_png: the program's icon as a PNG, for desktops that draw no SVG in their menus.
//   icon_png ICON.svg PIXELS FILE.png
//
// Runs at build time. Errors: exit code 1 and a line that names the file.

#include <QFileInfo>
#include <QImage>
#include <QPainter>
#include <QSaveFile>
#include <QSvgRenderer>

#include <cstdio>

namespace {

QImage draw(QSvgRenderer& icon, int pixels)
{
    QImage image(pixels, pixels, QImage::Format_ARGB32_Premultiplied);
    image.fill(Qt::transparent);
    QPainter painter(&image);
    icon.render(&painter);
    return image;
}

int fail(const char* file, const char* reason)
{
    (void)std::fprintf(stderr, "icon_png: %s: %s\n", file, reason);
    return 1;
}

} // namespace

int main(int argc, char** argv)
{
    const int pixels = argc == 4 ? QByteArray(argv[2]).toInt() : 0;
    if (pixels < 1 || pixels > 1024)
        return fail("arguments", "give ICON.svg, a number of pixels from 1 to 1024, and FILE.png");
    QSvgRenderer icon(QFile::decodeName(argv[1]));
    if (!icon.isValid())
        return fail(argv[1], "is not an SVG file that Qt can draw");
    QSaveFile file(QFile::decodeName(argv[3]));
    if (!file.open(QIODevice::WriteOnly) || !draw(icon, pixels).save(&file, "PNG") ||
        !file.commit())
        return fail(argv[3], "could not be written; is its folder there, and is the disk full?");
    return 0;
}
