#include "messages/message_facts.h"

#include "base/text.h"

const char *frag_framework_name(frag_framework framework)
{
    static const char *const names[] = {FRAG_FRAMEWORKS(FRAG_SECOND_OF_3)};
    return names[framework];
}

const char *frag_framework_title(frag_framework framework)
{
    static const char *const titles[] = {FRAG_FRAMEWORKS(FRAG_THIRD_OF_3)};
    return titles[framework];
}

const char *frag_figure_field(frag_figure figure)
{
    static const char *const fields[] = {FRAG_FIGURES(FRAG_SECOND_OF_2)};
    return fields[figure];
}
