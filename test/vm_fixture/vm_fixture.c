#include "vm_fixture.h"

void
Init_vm_fixture(void)
{
    const VALUE module = rb_define_module("VMFixture");
    RB_EXT_RACTOR_SAFE(true);
    Init_gvl(module);
    Init_events(module);
    Init_jobs(module);
    Init_signals(module);
    Init_probes(module);
    Init_processors(module);
}
