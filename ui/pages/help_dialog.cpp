#include "pages/help_dialog.h"

#include "pages/glossary.h"

#include <QDialogButtonBox>
#include <QLineEdit>
#include <QPushButton>
#include <QTextBrowser>
#include <QVBoxLayout>

#include <utility>

namespace mr::ui {

namespace {

QString html(const QVector<HelpEntry>& entries, const QString& wanted)
{
    QString text;
    QString section;
    for (const HelpEntry& entry : entries) {
        if (!entry.term.contains(wanted, Qt::CaseInsensitive) &&
            !entry.meaning.contains(wanted, Qt::CaseInsensitive))
            continue;
        if (entry.section != section)
            text += QStringLiteral("<h3>%1</h3>").arg(entry.section.toHtmlEscaped());
        section = entry.section;
        text += QStringLiteral("<p><b>%1</b><br>%2</p>")
                    .arg(entry.term.toHtmlEscaped(), entry.meaning.toHtmlEscaped());
    }
    return text;
}

} // namespace

HelpDialog::HelpDialog(const QString& title, QVector<HelpEntry> entries, QWidget* parent)
    : QDialog(parent)
    , m_entries(std::move(entries))
    , m_filter(new QLineEdit)
    , m_text(new QTextBrowser)
{
    setAttribute(Qt::WA_DeleteOnClose);
    setWindowTitle(title);
    m_filter->setPlaceholderText(tr("Find"));
    m_filter->setAccessibleName(tr("Find"));
    m_filter->setClearButtonEnabled(true);
    m_text->setAccessibleName(title);
    auto* buttons = new QDialogButtonBox;
    auto* close = buttons->addButton(tr("Close"), QDialogButtonBox::RejectRole);
    close->setAutoDefault(false); // Enter in the field is no reason to close
    connect(buttons, &QDialogButtonBox::rejected, this, &QDialog::reject);
    connect(m_filter, &QLineEdit::textChanged, this, &HelpDialog::refresh);
    auto* layout = new QVBoxLayout(this);
    layout->addWidget(m_filter);
    layout->addWidget(m_text, 1);
    layout->addWidget(buttons);
    resize(600, 620);
    refresh();
}

HelpDialog* HelpDialog::glossary(QWidget* parent)
{
    auto* dialog = new HelpDialog(tr("What does this mean?"), Glossary::words(), parent);
    dialog->setObjectName(QStringLiteral("glossary"));
    return dialog;
}

HelpDialog* HelpDialog::shortcuts(QWidget* parent)
{
    auto* dialog = new HelpDialog(tr("Shortcuts"), Glossary::shortcuts(), parent);
    dialog->setObjectName(QStringLiteral("shortcuts"));
    return dialog;
}

QString HelpDialog::shown() const
{
    return m_text->toPlainText();
}

void HelpDialog::refresh()
{
    const QString found = html(m_entries, m_filter->text().trimmed());
    m_text->setHtml(found.isEmpty() ? tr("Nothing here matches.").toHtmlEscaped() : found);
}

QString aboutText(const QString& program)
{
    const QString head = HelpDialog::tr("Fine-tunes language models that are larger than the "
                                        "memory of the GPU, and shows where every second goes.");
    const QString licence =
        HelpDialog::tr("Free software under the GNU General Public License, version 3 or later. "
                       "There is no warranty.");
    const QString inside = HelpDialog::tr("It contains or uses:");
    return QStringLiteral("<h3>%1</h3><p>%2</p><p>%3</p><p>%4 Qt %5 (LGPL 3), QCustomPlot (GPL 3), "
                          "SQLite (public domain), oneDNN (Apache 2.0), Highway (Apache 2.0), "
                          "SentencePiece (Apache 2.0), simdjson (Apache 2.0), PCRE2 (BSD), "
                          "utf8proc (MIT), nlohmann/json (MIT), {fmt} (MIT), xxHash (BSD), "
                          "liburing (MIT or LGPL).</p>")
        .arg(program.toHtmlEscaped(), head.toHtmlEscaped(), licence.toHtmlEscaped(),
            inside.toHtmlEscaped(), QString::fromLatin1(qVersion()));
}

} // namespace mr::ui
