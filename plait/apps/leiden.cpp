#include "plait/apps/leiden.h"

#include "plait/apps/on_cpu.h"
#include "plait/apps/rows.h"

namespace plait {

const App kLeiden{
    .name = "leiden",
    .summary = "Find connected communities of vertices with many edges among them (Leiden)",
    .options = community_options(),
    .columns = {{"community", true}},
    .facts = {"communities", "largest", "modularity"},
    .check = check_communities,
    .on_cpu = app_on_cpu<Leiden>,
    .on_gpu = app_on_gpu<Leiden>,
    .verify = [](const Dataset& dataset, const AppSettings& settings,
                 const AppResult& result) { verify_communities(dataset, settings, result, true); },
    .bytes = kCommunityBytes};

}  // namespace plait
