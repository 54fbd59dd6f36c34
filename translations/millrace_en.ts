<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE TS>
<TS version="2.1" language="en" sourcelanguage="en">
    <context>
        <name>mr::ui::BinView</name>
        <message numerus="yes">
            <source>Checkpoints, models and records in %n folder(s) go with it.</source>
            <translation>
                <numerusform>Checkpoints, models and records in %n folder go with it.</numerusform>
                <numerusform>Checkpoints, models and records in %n folders go with them.</numerusform>
            </translation>
        </message>
        <message numerus="yes">
            <source>Delete %n run(s) for good?</source>
            <translation>
                <numerusform>Delete %n run for good?</numerusform>
                <numerusform>Delete %n runs for good?</numerusform>
            </translation>
        </message>
    </context>
    <context>
        <name>mr::ui::CompareView</name>
        <message numerus="yes">
            <source>All %n setting(s) are the same</source>
            <translation>
                <numerusform>The one setting (%n) is the same</numerusform>
                <numerusform>All %n settings are the same</numerusform>
            </translation>
        </message>
        <message numerus="yes">
            <source>%1 of %n setting(s)</source>
            <translation>
                <numerusform>%1 of %n setting</numerusform>
                <numerusform>%1 of %n settings</numerusform>
            </translation>
        </message>
    </context>
    <context>
        <name>mr::ui::DatasetSection</name>
        <message numerus="yes">
            <source>%n row(s) are excluded.</source>
            <translation>
                <numerusform>%n row is excluded.</numerusform>
                <numerusform>%n rows are excluded.</numerusform>
            </translation>
        </message>
        <message numerus="yes">
            <source>%n row(s) are longer than the sequence length and are cut.</source>
            <translation>
                <numerusform>%n row is longer than the sequence length and is cut.</numerusform>
                <numerusform>%n rows are longer than the sequence length and are cut.</numerusform>
            </translation>
        </message>
        <message numerus="yes">
            <source>%n row(s) have nothing to train and are skipped.</source>
            <translation>
                <numerusform>%n row has nothing to train and is skipped.</numerusform>
                <numerusform>%n rows have nothing to train and are skipped.</numerusform>
            </translation>
        </message>
        <message numerus="yes">
            <source>%n row(s) hold /no_think, which this model does not know: it is read as a word of the question.</source>
            <translation>
                <numerusform>%n row holds /no_think, which this model does not know: it is read as a word of the question.</numerusform>
                <numerusform>%n rows hold /no_think, which this model does not know: it is read as a word of the question.</numerusform>
            </translation>
        </message>
        <message numerus="yes">
            <source>%n row(s) cannot be read (%1).</source>
            <translation>
                <numerusform>%n row cannot be read (%1).</numerusform>
                <numerusform>%n rows cannot be read (%1).</numerusform>
            </translation>
        </message>
        <message numerus="yes">
            <source>At least %n row(s) cannot be read (%1).</source>
            <translation>
                <numerusform>At least %n row cannot be read (%1).</numerusform>
                <numerusform>At least %n rows cannot be read (%1).</numerusform>
            </translation>
        </message>
        <message numerus="yes">
            <source>%n row(s) cannot be read and are left out (%1).</source>
            <translation>
                <numerusform>%n row cannot be read and is left out (%1).</numerusform>
                <numerusform>%n rows cannot be read and are left out (%1).</numerusform>
            </translation>
        </message>
    </context>
    <context>
        <name>mr::ui::HistoryPage</name>
        <message numerus="yes">
            <source>%n run(s)</source>
            <translation>
                <numerusform>%n run</numerusform>
                <numerusform>%n runs</numerusform>
            </translation>
        </message>
        <message numerus="yes">
            <source>%1 of %n run(s)</source>
            <translation>
                <numerusform>%1 of %n run</numerusform>
                <numerusform>%1 of %n runs</numerusform>
            </translation>
        </message>
    </context>
    <context>
        <name>mr::ui::LineChart</name>
        <message numerus="yes">
            <source>%n value(s) not above zero cannot be shown on a log axis</source>
            <translation>
                <numerusform>%n value not above zero cannot be shown on a log axis</numerusform>
                <numerusform>%n values not above zero cannot be shown on a log axis</numerusform>
            </translation>
        </message>
    </context>
    <context>
        <name>mr::ui::PlanPanel</name>
        <message numerus="yes">
            <source>%n kept and one being written, %1 each; %2 free on the disk.</source>
            <translation>
                <numerusform>%n kept and one being written, %1 each; %2 free on the disk.</numerusform>
                <numerusform>%n kept and one being written, %1 each; %2 free on the disk.</numerusform>
            </translation>
        </message>
        <message numerus="yes">
            <source>Only %n step(s): the model will hardly learn anything. Train for more epochs, or accumulate less.</source>
            <translation>
                <numerusform>Only %n step: the model will hardly learn anything. Train for more epochs, or accumulate less.</numerusform>
                <numerusform>Only %n steps: the model will hardly learn anything. Train for more epochs, or accumulate less.</numerusform>
            </translation>
        </message>
    </context>
    <context>
        <name>mr::ui::RunEditor</name>
        <message numerus="yes">
            <source>Deleted %n run(s).</source>
            <translation>
                <numerusform>Deleted %n run.</numerusform>
                <numerusform>Deleted %n runs.</numerusform>
            </translation>
        </message>
        <message numerus="yes">
            <source>Restored %n run(s).</source>
            <translation>
                <numerusform>Restored %n run.</numerusform>
                <numerusform>Restored %n runs.</numerusform>
            </translation>
        </message>
    </context>
    <context>
        <name>mr::ui::RunNotes</name>
        <message numerus="yes">
            <source>%n run(s)</source>
            <translation>
                <numerusform>%n run</numerusform>
                <numerusform>%n runs</numerusform>
            </translation>
        </message>
    </context>
    <context>
        <name>mr::ui::SettingsForm</name>
        <message numerus="yes">
            <source> token(s)</source>
            <translation>
                <numerusform> token</numerusform>
                <numerusform> tokens</numerusform>
            </translation>
        </message>
        <message numerus="yes">
            <source> sequence(s)</source>
            <translation>
                <numerusform> sequence</numerusform>
                <numerusform> sequences</numerusform>
            </translation>
        </message>
        <message numerus="yes">
            <source> micro-batch(es)</source>
            <translation>
                <numerusform> micro-batch</numerusform>
                <numerusform> micro-batches</numerusform>
            </translation>
        </message>
        <message numerus="yes">
            <source> minute(s)</source>
            <translation>
                <numerusform> minute</numerusform>
                <numerusform> minutes</numerusform>
            </translation>
        </message>
        <message numerus="yes">
            <source> step(s)</source>
            <translation>
                <numerusform> step</numerusform>
                <numerusform> steps</numerusform>
            </translation>
        </message>
    </context>
    <context>
        <name>mr::ui::ForecastPanel</name>
        <message numerus="yes">
            <source>median of %n step(s)</source>
            <translation>
                <numerusform>median of %n step</numerusform>
                <numerusform>median of %n steps</numerusform>
            </translation>
        </message>
    </context>
    <context>
        <name>mr::ui::TimelineText</name>
        <message numerus="yes">
            <source>Step %1 · %2 · %n task(s)</source>
            <translation>
                <numerusform>Step %1 · %2 · %n task</numerusform>
                <numerusform>Step %1 · %2 · %n tasks</numerusform>
            </translation>
        </message>
        <message numerus="yes">
            <source>and %n more here: zoom in</source>
            <translation>
                <numerusform>and %n more here: zoom in</numerusform>
                <numerusform>and %n more here: zoom in</numerusform>
            </translation>
        </message>
    </context>
    <context>
        <name>mr::ui::PlanForecast</name>
        <message numerus="yes">
            <source>%n step(s), about %1</source>
            <translation>
                <numerusform>%n step, about %1</numerusform>
                <numerusform>%n steps, about %1</numerusform>
            </translation>
        </message>
    </context>
    <context>
        <name>mr::ui::PlanWords</name>
        <message numerus="yes">
            <source>at most %n step(s) stale</source>
            <translation>
                <numerusform>at most %n step stale</numerusform>
                <numerusform>at most %n steps stale</numerusform>
            </translation>
        </message>
    </context>
    <context>
        <name>mr::ui::TryColumn</name>
        <message numerus="yes">
            <source>%n token(s)</source>
            <translation>
                <numerusform>%n token</numerusform>
                <numerusform>%n tokens</numerusform>
            </translation>
        </message>
    </context>
    <context>
        <name>mr::ui::ModelsDialog</name>
        <message numerus="yes">
            <source>%n model(s), %1 on the disk</source>
            <translation>
                <numerusform>%n model, %1 on the disk</numerusform>
                <numerusform>%n models, %1 on the disk</numerusform>
            </translation>
        </message>
    </context>
    <context>
        <name>mr::ui::RowChecksDialog</name>
        <message numerus="yes">
            <source>A sequence length of %1 keeps %2 of the tokens and cuts %n row(s).</source>
            <translation>
                <numerusform>A sequence length of %1 keeps %2 of the tokens and cuts %n row.</numerusform>
                <numerusform>A sequence length of %1 keeps %2 of the tokens and cuts %n rows.</numerusform>
            </translation>
        </message>
        <message numerus="yes">
            <source>%n row(s) will be left out.</source>
            <translation>
                <numerusform>%n row will be left out.</numerusform>
                <numerusform>%n rows will be left out.</numerusform>
            </translation>
        </message>
    </context>
</TS>
