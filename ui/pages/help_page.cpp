#include "pages/help_page.h"

#include <QDesktopServices>
#include <QDialogButtonBox>
#include <QFile>
#include <QImage>
#include <QPushButton>
#include <QTextBlock>
#include <QTextBrowser>
#include <QUrl>
#include <QVBoxLayout>

namespace mr::ui {

namespace {

constexpr int kPictureWidth = 600; // of pictures that were taken larger

// Pages link to each other, to pictures, and to files of the repository.
class PageBrowser final : public QTextBrowser
{
public:
    QVariant loadResource(int type, const QUrl& name) override
    {
        const QVariant loaded = QTextBrowser::loadResource(type, name);
        if (type != QTextDocument::ImageResource)
            return loaded;
        QImage image = loaded.value<QImage>();
        if (image.isNull())
            image.loadFromData(loaded.toByteArray());
        const int width = qRound(kPictureWidth * devicePixelRatioF());
        if (image.width() > width)
            image = image.scaledToWidth(width, Qt::SmoothTransformation);
        image.setDevicePixelRatio(devicePixelRatioF());
        return image;
    }

protected:
    void doSetSource(const QUrl& url, QTextDocument::ResourceType type) override
    {
        if (url.scheme() != QLatin1String("qrc"))
            QDesktopServices::openUrl(url); // the browser of the desktop
        else if (QFile::exists(u':' + url.path()))
            QTextBrowser::doSetSource(url, type);
    }
};

} // namespace

HelpPage::HelpPage(const QString& name, QWidget* parent)
    : QDialog(parent)
    , m_text(new PageBrowser)
{
    setAttribute(Qt::WA_DeleteOnClose);
    setObjectName(name);
    auto* buttons = new QDialogButtonBox;
    auto* back = buttons->addButton(tr("Back"), QDialogButtonBox::ActionRole);
    buttons->addButton(tr("Close"), QDialogButtonBox::RejectRole);
    back->setEnabled(false);
    connect(back, &QPushButton::clicked, m_text, &QTextBrowser::backward);
    connect(m_text, &QTextBrowser::backwardAvailable, back, &QPushButton::setEnabled);
    connect(m_text, &QTextBrowser::sourceChanged, this, &HelpPage::followTitle);
    connect(buttons, &QDialogButtonBox::rejected, this, &QDialog::reject);
    auto* layout = new QVBoxLayout(this);
    layout->addWidget(m_text, 1);
    layout->addWidget(buttons);
    resize(720, 680);
    m_text->setSource(QUrl(QStringLiteral("qrc:/help/%1.md").arg(name)));
}

void HelpPage::followTitle()
{
    const QString title = m_text->document()->firstBlock().text();
    setWindowTitle(title);
    m_text->setAccessibleName(title);
}

} // namespace mr::ui
