#include "pages/template_choice.h"

#include <QEvent>
#include <QFileDialog>
#include <QHBoxLayout>
#include <QLabel>
#include <QPushButton>

namespace mr::ui {

namespace {

const QString kChatMl = QStringLiteral("chatml");
const QString kLlama3 = QStringLiteral("llama3");

} // namespace

TemplateChoice::TemplateChoice(QWidget* parent)
    : QWidget(parent)
    , m_text(new QLabel(this))
    , m_chatMl(new QPushButton(this))
    , m_llama3(new QPushButton(this))
    , m_file(new QPushButton(this))
    , m_none(new QPushButton(this))
{
    setObjectName(QStringLiteral("templateChoice"));
    auto* layout = new QHBoxLayout(this);
    layout->setContentsMargins(0, 0, 0, 0);
    for (QWidget* widget :
        std::initializer_list<QWidget*>{m_text, m_chatMl, m_llama3, m_file, m_none})
        layout->addWidget(widget);
    layout->addStretch(1);
    connect(m_chatMl, &QPushButton::clicked, this, [this] { emit chosen(kChatMl); });
    connect(m_llama3, &QPushButton::clicked, this, [this] { emit chosen(kLlama3); });
    connect(m_file, &QPushButton::clicked, this, &TemplateChoice::browse);
    connect(m_none, &QPushButton::clicked, this, [this] { emit chosen(QString()); });
    offer();
    hide();
}

void TemplateChoice::offer()
{
    m_name.clear();
    showState();
}

void TemplateChoice::setChosen(const QString& name)
{
    m_name = name;
    showState();
}

QString TemplateChoice::text() const
{
    return m_text->text();
}

void TemplateChoice::browse()
{
    const QString path = QFileDialog::getOpenFileName(this, tr("Chat template"), QString(),
        tr("Jinja templates (*.jinja *.jinja2 *.j2 *.txt);;All files (*)"));
    if (!path.isEmpty())
        emit chosen(path);
}

void TemplateChoice::showState()
{
    const bool isChosen = !m_name.isEmpty();
    const QString shown = m_name == kChatMl   ? tr("ChatML")
                          : m_name == kLlama3 ? tr("Llama 3")
                                              : tr("a template of your own");
    m_text->setText(
        isChosen ? tr("The model is taught to chat with %1.").arg(shown) : tr("Chat template:"));
    m_chatMl->setText(tr("ChatML"));
    m_chatMl->setToolTip(tr("The form of Qwen and many others; right if in doubt"));
    m_llama3->setText(tr("Llama 3"));
    m_llama3->setToolTip(tr("The form of Llama 3; right for its base models"));
    m_file->setText(tr("From a file…"));
    m_file->setToolTip(tr("A Jinja chat template, as another model has in its folder"));
    m_none->setText(tr("Choose another"));
    for (QPushButton* button : {m_chatMl, m_llama3, m_file})
        button->setVisible(!isChosen);
    m_none->setVisible(isChosen);
}

void TemplateChoice::changeEvent(QEvent* event)
{
    QWidget::changeEvent(event);
    if (event->type() == QEvent::LanguageChange)
        showState();
}

} // namespace mr::ui
