#include "widgets/path_edit.h"

#include "text/svg_icon.h"

#include <QDir>
#include <QDragEnterEvent>
#include <QFileDialog>
#include <QFileInfo>
#include <QHBoxLayout>
#include <QLineEdit>
#include <QMimeData>
#include <QToolButton>

namespace mr::ui {

namespace {

QString droppedPath(const QMimeData* data)
{
    const QList<QUrl> urls = data->urls();
    return urls.size() == 1 && urls.front().isLocalFile() ? urls.front().toLocalFile() : QString();
}

} // namespace

PathEdit::PathEdit(Want want, QWidget* parent)
    : QWidget(parent)
    , m_want(want)
    , m_edit(new QLineEdit(this))
    , m_browse(new QToolButton(this))
{
    m_edit->setClearButtonEnabled(true);
    m_edit->setDragEnabled(true);
    m_edit->setAcceptDrops(false); // this widget takes files; the line edit would paste a URL
    m_browse->setIcon(
        svgIcon(want == Want::Folder ? QStringLiteral("folder") : QStringLiteral("file")));
    m_browse->setToolButtonStyle(Qt::ToolButtonTextBesideIcon);
    m_browse->setFocusPolicy(Qt::StrongFocus);
    setAcceptDrops(true);
    setFocusProxy(m_edit);

    auto* layout = new QHBoxLayout(this);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->addWidget(m_edit, 1);
    layout->addWidget(m_browse);
    connect(m_edit, &QLineEdit::textChanged, this, [this] { emit pathChanged(path()); });
    connect(m_browse, &QToolButton::clicked, this, &PathEdit::browse);
    retranslateUi();
}

QString PathEdit::path() const
{
    QString text = m_edit->text().trimmed();
    if (text == QLatin1String("~") || text.startsWith(QLatin1String("~/")))
        text = QDir::homePath() + text.mid(1);
    return text.isEmpty() ? text : QDir::cleanPath(text);
}

void PathEdit::setPath(const QString& path)
{
    m_edit->setText(path);
}

QWidget* PathEdit::lastInFocusOrder() const
{
    return m_browse;
}

void PathEdit::setTexts(const QString& accessibleName, const QString& placeholder)
{
    m_edit->setAccessibleName(accessibleName);
    m_edit->setPlaceholderText(placeholder);
    m_browse->setAccessibleName(tr("Browse: %1").arg(accessibleName));
}

void PathEdit::dragEnterEvent(QDragEnterEvent* event)
{
    if (!droppedPath(event->mimeData()).isEmpty())
        event->acceptProposedAction();
}

void PathEdit::dropEvent(QDropEvent* event)
{
    setPath(droppedPath(event->mimeData()));
    event->acceptProposedAction();
}

void PathEdit::changeEvent(QEvent* event)
{
    QWidget::changeEvent(event);
    if (event->type() == QEvent::LanguageChange)
        retranslateUi();
}

void PathEdit::browse()
{
    const QString now = path();
    const QString start = now.isEmpty() ? QDir::homePath() : now;
    const QString chosen =
        m_want == Want::Folder
            ? QFileDialog::getExistingDirectory(this, m_edit->accessibleName(), start)
            : QFileDialog::getOpenFileName(this, m_edit->accessibleName(), start,
                  tr("Datasets (*.jsonl *.json *.csv *.txt *.parquet *.gz *.zst);;All files (*)"));
    if (!chosen.isEmpty())
        setPath(chosen);
}

void PathEdit::retranslateUi()
{
    m_browse->setText(tr("Browse…"));
    m_browse->setAccessibleName(tr("Browse: %1").arg(m_edit->accessibleName()));
}

} // namespace mr::ui
