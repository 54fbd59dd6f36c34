#include "pages/ollama_row.h"

#include <QCheckBox>
#include <QHBoxLayout>
#include <QLineEdit>

namespace mr::ui {

namespace {

QString proposed(const QString& name)
{
    QString out;
    for (const QChar c : name.toLower())
        if ((c >= u'a' && c <= u'z') || (c >= u'0' && c <= u'9') || c == u'_' ||
            (!out.isEmpty() && (c == u'.' || c == u'-')))
            out += c;
    return out.isEmpty() ? QStringLiteral("my-model") : out;
}

} // namespace

OllamaRow::OllamaRow(const QString& name, QWidget* parent)
    : QWidget(parent)
    , m_choice(new QCheckBox(tr("Create the model in Ollama as")))
    , m_name(new QLineEdit(proposed(name)))
{
    m_choice->setToolTip(
        tr("The Ollama that runs on this PC is asked to make a model of the file. Nothing goes to "
           "another machine."));
    m_name->setAccessibleName(tr("Name of the model in Ollama"));
    m_name->setEnabled(false);
    auto* layout = new QHBoxLayout(this);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->addWidget(m_choice);
    layout->addWidget(m_name, 1);
    connect(m_choice, &QCheckBox::toggled, m_name, &QLineEdit::setEnabled);
    connect(m_choice, &QCheckBox::toggled, this, &OllamaRow::changed);
    connect(m_name, &QLineEdit::textChanged, this, &OllamaRow::changed);
}

QString OllamaRow::modelName() const
{
    return m_choice->isChecked() ? m_name->text().trimmed() : QString();
}

bool OllamaRow::isComplete() const
{
    return !m_choice->isChecked() || !m_name->text().trimmed().isEmpty();
}

} // namespace mr::ui
