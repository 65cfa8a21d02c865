#include "sim/replay/checkpoint.h"

#include "sim/image.h"
#include "base/memory.h"
#include "sim/replay/replay_state.h"

struct frag_checkpoint {
    frag_image image;
};

frag_checkpoint *frag_checkpoint_create(void)
{
    return frag_alloc(1, sizeof(frag_checkpoint));
}

void frag_checkpoint_destroy(frag_checkpoint *checkpoint)
{
    if (checkpoint == NULL)
        return;
    frag_image_destroy(&checkpoint->image);
    frag_free(checkpoint);
}

static size_t slot_count(const frag_replay *replay)
{
    return (size_t)replay->trace->slot_count + 1;
}

bool frag_checkpoint_keep(frag_checkpoint *checkpoint, const frag_replay *replay)
{
    frag_image *image = &checkpoint->image;
    frag_image_empty(image);
    if (frag_policy_engine_of(replay->ops)->replay == NULL || replay->notes != NULL ||
        replay->audit != NULL || !frag_image_add_arena(image, &replay->arena))
        return false;
    frag_image_add(image, replay, sizeof *replay);
    frag_image_add(image, replay->large, replay->large_count * sizeof *replay->large);
    frag_image_add(image, replay->waiting, replay->waiting_end * sizeof *replay->waiting);
    if (replay->wait_numbers != NULL)
        frag_image_add(image, replay->wait_numbers,
                       slot_count(replay) * sizeof *replay->wait_numbers);
    if (replay->places != NULL)
        frag_places_keep(replay, image);
    if (replay->uses != NULL)
        frag_use_keep(replay, image);
    return frag_device_keep(replay->device, image);
}

/* Arrays stay where they are now, since they may have moved to grow. */
static void return_arrays(frag_replay *replay, const frag_replay *now, frag_image *image)
{
    bool has_waited = replay->wait_numbers != NULL;
    bool has_uses = replay->uses != NULL;
    replay->large = now->large;
    replay->large_capacity = now->large_capacity;
    frag_image_take(image, replay->large, replay->large_count * sizeof *replay->large);
    replay->waiting = now->waiting;
    replay->waiting_capacity = now->waiting_capacity;
    frag_image_take(image, replay->waiting, replay->waiting_end * sizeof *replay->waiting);
    replay->wait_numbers = now->wait_numbers;
    if (has_waited)
        frag_image_take(image, replay->wait_numbers,
                        slot_count(replay) * sizeof *replay->wait_numbers);
    if (replay->places != NULL)
        frag_places_return(replay, image);
    replay->uses = now->uses;
    if (has_uses) {
        frag_use_return(replay, image);
    } else {
        frag_use_destroy(replay->uses);
        replay->uses = NULL;
    }
}

void frag_checkpoint_return(frag_checkpoint *checkpoint, frag_replay *replay)
{
    frag_image *image = &checkpoint->image;
    frag_replay now = *replay;
    frag_image_rewind(image);
    frag_image_take_arena(image, &replay->arena);
    frag_image_take(image, replay, sizeof *replay);
    return_arrays(replay, &now, image);
    frag_device_return(replay->device, image);
}
