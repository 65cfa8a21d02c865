/* Tests of the rules that hear a person who tells that memory ran out, and pass over what explains,
 * advises or supposes. */
#include "messages/message.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static bool is_oom(const char *text)
{
    frag_messages messages;
    frag_messages_read(&messages, text, strlen(text));
    const frag_message *best = frag_messages_best(&messages);
    bool is_oom = best != NULL && best->kind == FRAG_MESSAGE_OOM;
    frag_messages_destroy(&messages);
    return is_oom;
}

static void assert_each(const char *const *texts, size_t count, bool expected)
{
    for (size_t i = 0; i < count; i++)
        if (is_oom(texts[i]) != expected)
            fail_msg("expected %s: %s", expected ? "an out of memory" : "none", texts[i]);
}

static void how_it_ended_is_told(void **state)
{
    (void)state;
    static const char *const out[] = {
        "GPU memory keeps rising until OOM, any idea?",
        "usage climbs from 5G to 11G and finally OOM",
        "it grows by 3 MB every step and eventually runs out of memory",
        "It loads for a minute and then prompts out of memory on my 3080.",
        "My 2070 is experiencing a VRAM overflow with the second sample",
    };
    static const char *const not_out[] = {
        "Increase the batch size until OOM, then halve it.",
        "Raise num_ctx until you run out of VRAM.",
        "GPU memory usage is growing by about 2MiB and never decreasing",
        "Error: insufficient permissions for GPU memory counters",
        "Insufficient data to estimate GPU memory",
    };
    assert_each(out, sizeof out / sizeof *out, true);
    assert_each(not_out, sizeof not_out / sizeof *not_out, false);
}

static void a_complaint_is_told_whatever_was_asked_before(void **state)
{
    (void)state;
    static const char *const out[] = {
        "I had to go down to batch 4 because 8 would give CUDA out of memory",
        "I have two 3090s and use only one, so why is there not enough memory?",
        "Why do I still get out of memory with 24 GB?",
        "How much does it need, I can't run the 13B model on a 4080, memory is not enough",
        "What can I do, I get OOM on the second image",
    };
    static const char *const not_out[] = {
        "A batch of 16 would cause an out of memory on smaller cards",
        "Why does CUDA run out of memory? Because activations are kept.",
        "Why is there not enough memory on consumer cards?",
        "If it can't run, the video memory is insufficient",
        "I only have 12GB VRAM, is it enough?",
    };
    assert_each(out, sizeof out / sizeof *out, true);
    assert_each(not_out, sizeof not_out / sizeof *not_out, false);
}

static void what_happens_to_many_happened_to_nobody(void **state)
{
    (void)state;
    static const char *const not_out[] = {
        "Large contexts lead to 'CUDA out of memory' errors on small cards.",
        "Without it the server suffers from frequent Out of Memory (OOM) crashes under load.",
        "When you ask for a tensor of 2 GB, the allocation fails.",
        "The holes are small. You have, say, 4 GB in all, so a 2 GB allocation fails.",
    };
    assert_each(not_out, sizeof not_out / sizeof *not_out, false);
}

static void chinese_says_it_without_blanks(void **state)
{
    (void)state;
    static const char *const out[] = {"推理时报OOM",
                                      "训练第3个epoch报oom",
                                      "一跑就OOM",
                                      "调小了还是会爆显存",
                                      "跑着跑着显存炸了",
                                      "上运行显示 OOM，请问要多大显存",
                                      "用4090显卡推理时，报错OOM",
                                      "显存不足",
                                      "3090 24g爆显存了",
                                      "4g的显存还是不够",
                                      "我用3090训练，为什么报显存不足，怎么办",
                                      "GPUメモリが足りずに学習できなかった"};
    static const char *const not_out[] = {"如何避免OOM", "会不会OOM？", "不会OOM",
                                          "12GB显存够不够？",
                                          "显存溢出可以通过调小batch size解决。"};
    assert_each(out, sizeof out / sizeof *out, true);
    assert_each(not_out, sizeof not_out / sizeof *not_out, false);
}

static void persons_put_it_in_short(void **state)
{
    (void)state;
    static const char *const out[] = {
        "It OOMs at step 20 on my 4090",
        "it OOMs as soon as training starts",
        "keeps OOMing on the second image",
        "the image is done, and then it OOM's.",
        "my 3060 OOM'd after ten minutes",
        "on a T4 it goes OOM",
        "It will OOM when batch size > 4",
        "Getting OOM on a T4, what to do",
        "Same here, OOM on a 3090",
        "+1, runs OOM on T4",
        "The card's memory fills up and then it crashes",
        "it uses all of my VRAM and then fails",
        "my gpu memory is exhausted after three epochs",
        "me too, vram runs out",
        "The model won't fit into my 12GB",
        "this does not fit on my 3080, any way to shrink it?",
        "Even a batch size of 1 doesn't fit",
        "it needs more than my 12GB",
        "10GB is not enough for this, it dies when loading",
        "OOM on the lowest settings",
        "My single GPU doesn't have enough memory. How can I use several?",
        "I keep hitting the VRAM limit on my 4070",
        "24 GB on my 4090 isn't enough to finetune this",
        "Unfortunately my GPU runs out of memory during validation",
        "An out of memory error pops up when I click generate",
        "Thanks for your work, but on one RTX3090, I got out of memory",
        "Training always goes out of memory after 50 steps",
        "When I try to start it, it says there isn't enough memory for the buffer on the GPU",
        "I'm out of VRAM with this",
        "This uses too much VRAM for my card",
    };
    static const char *const not_out[] = {
        "Does it OOM on 8 GB?",
        "it no longer OOMs with the patch",
        "If it OOMs, halve the batch",
        "Fixes random OOMs in the sampler",
        "The trace of a device has the segment events and OOMs as observed events.",
        "it will OOM if you load two models",
        "I don't get OOM anymore",
        "Detect the best settings to stop getting OOM error",
        "With less than 8GB you'll get OOM",
        "When VRAM fills up, the driver swaps and the game stutters",
        "The model needs 24GB so it won't fit on a 3060",
        "A 12GB card is not enough for SDXL training",
        "The text does not fit on my screen",
        "My card has 8 GB, will it work?",
        "I don't have enough VRAM to test this, sorry",
        "Be careful not to run out of VRAM",
        "VRAM is more than 100%, is it ok?",
        "The \"GPU memory full\" error is a common frustration",
    };
    assert_each(out, sizeof out / sizeof *out, true);
    assert_each(not_out, sizeof not_out / sizeof *not_out, false);
}

static void what_a_page_or_an_interface_says_is_no_message(void **state)
{
    (void)state;
    static const char *const not_out[] = {
        "Stable Diffusion Out of Memory: GPU Fix",
        "CUDA Out of Memory Explained",
        "`CL_INVALID_BUFFER_SIZE` should be returned where the size exceeds the limit.",
        "This reduces the precision, not allocated VRAM; move the pipe to the host.",
        "On cards with less than 4GB VRAM, also turn on offloading",
        ("This generally means that the GPU has crashed, or that the driver failed to allocate "
         "memory"),
        "メモリ不足の時には OOM Killer がプロセスを kill する",
        "--lowvram tells the program to not allocate a VRAM scratch buffer.",
        "Ein defekter Speicher ist nicht dasselbe wie zu wenig VRAM zu haben.",
    };
    assert_each(not_out, sizeof not_out / sizeof *not_out, false);
}

static void a_memory_error_of_a_device_is_one(void **state)
{
    (void)state;
    static const char *const out[] = {
        "training dies at step 300 with a memory error on my 3090",
        "I ran into memory issues with batch 8 on my 1080",
        "When I run train.py, GPU memory problem occurred like this",
        "GPU memory error",
        "CUDA memory error on my laptop",
        "I'm new here and keep getting this error called allocation on device. What is it?",
        "Allocation on device error in KSampler",
    };
    static const char *const not_out[] = {
        "memory error",
        "I get a memory error, I have 32GB RAM",
        "I got a MemoryError when loading 2000 images",
        "GPU memory issues and how to avoid them",
        "How to fix a GPU memory error",
        "I see uncorrectable ECC memory errors on my GPU",
        "I get illegal memory access errors on my GPU",
    };
    assert_each(out, sizeof out / sizeof *out, true);
    assert_each(not_out, sizeof not_out / sizeof *not_out, false);
}

static void a_person_tells_it_with_any_verb(void **state)
{
    (void)state;
    static const char *const out[] = {
        "I had to restart the kernel after OOM",
        "After OOM my process hangs",
        "Turns out my VRAM is not enough to test these",
        "I can reproduce the OOM",
        "When generating a large image, it will OOM just before the end",
        "On training it is fine, but when on validation, I will get an OOM error",
        "I have a 960 GPU card with 4 GB RAM and demo.py complains insufficient memory",
        "OOM happens when I run inference.py, may I ask how to solve it?",
        "With the new driver my GPU memory overflows",
        "Your crash log says that you ran out of VRAM.",
        "It stopped when it ran out of memeory of my GPU",
        "My laptop has 4 GB of GPU memory. It seems still not enough to run the model.",
        "It crashed after several epochs due to GPU memory usage keep increasing.",
        "while playing, after VRAM is slightly above 3950MB the game crashes",
        "the game consumes all my 8GB of VRAM and locks the system",
        "VRAM leaking until crash.",
        "The game starts to glitch and then it crashes at 5.9 GB VRAM.",
        "May I ask why there is insufficient GPU memory when I use a 2080ti",
        "VRAM usage rises when in the lobby, the card exceeds 18gb and then the drivers crash",
        "I have a 8G gpu, sometimes it will crash as out of memory.",
        "It almost loads before crashing, saying that my GPU reported that it ran out of memory",
    };
    static const char *const not_out[] = {
        "I use gradient checkpointing against OOM",
        "It crashed due to a driver that leaks file handles",
        "VRAM is above 3950MB and all is fine",
        "VRAM stays flat until the test crashes",
        "I have a 8G gpu, could it crash with what you call out of memory?",
        "I am afraid of OOM",
        "I'd prefer a GPU OOM to that",
        "It is failing, I think due to lack of memory?",
        "Die GPUOutOfMemoryError Schnittstelle der WebGPU API beschreibt einen Fehler",
        "My PR makes OOM errors clearer",
        "I solved the out of memory problem by setting the batch to 1",
        "My question is whether an OOM is counted",
        "It says you are running out of memory if no kernel fits",
        "16GB seems not enough, typically we use 32GB cards, or else there is an OOM issue",
    };
    assert_each(out, sizeof out / sizeof *out, true);
    assert_each(not_out, sizeof not_out / sizeof *not_out, false);
}

/* An OOM is got, hit, seen and said; memory blows up, a job is killed by it. */
static void what_is_got_or_said_or_kills_a_job_is_told(void **state)
{
    (void)state;
    static const char *const out[] = {
        "Getting OOM with a 12B model on 12GB, any tips?",
        "Still hitting OOM with stage 3 and offload to the CPU",
        "We see OOMs on A100 40GB with sequences of 8k",
        "Training on 4x V100 gives OOM but on one it works",
        "Anyone else getting OOM with the new nightly?",
        "After ~500 steps we OOM. Before this commit it was stable at 18GB.",
        "DDP: rank 3 OOM, other ranks have 10GB free",
        "The model loads but its first forward pass OOMs",
        "Blender says out of memory with OptiX",
        "torch throws an out of memory exception",
        "My job on the GPU gets killed with a CUDA OOM",
        "the GPU memory blows up during evaluation",
        "evaluation blows up the GPU memory and the run is killed",
        "When running the training code, the video memory always explodes",
        "gpu memory increased per epoch till OOM.",
        "It eats all 24GB and then errors",
        "My GPU runs out of space when loading the 13B checkpoint",
        "After the upgrade the same config no longer fits in memory",
        "The app crashes my PC when VRAM is full",
    };
    static const char *const not_out[] = {
        "We lost another worker. 3 OOM, the others do not",
        "fewer OOMs with the new sampler",
        "run out of memory are left out of the figure; in the data they have `is_oom`.",
        "The allocator throws an out of memory exception if the pool is empty.",
        "Does it get OOM on 8 GB?",
        "the memory no longer grows on the GPU",
        "We need a way to tell that a job failed due to OOM.",
        "It no longer fits our workflow on the GPU",
        "This avoids OOMs on small cards",
        "Our code runs out of space on the page",
    };
    assert_each(out, sizeof out / sizeof *out, true);
    assert_each(not_out, sizeof not_out / sizeof *not_out, false);
}

static void other_languages_have_many_words_for_it(void **state)
{
    (void)state;
    static const char *const out[] = {
        "训练到一半显存超出",
        "显存满了直接崩溃",
        "46G的显存没有跑下来",
        "两张4090装不下，报OOM",
        "VRAMが溢れて落ちます",
        "GPUのメモリが枯渇しました",
        "VRAM이 모자랍니다",
        "GPU 메모리가 터져서 학습이 죽어요",
        "Видеопамять заканчивается",
        "Модель не влезает в видеопамять",
        "Modell passt nicht in den VRAM",
        "Der Grafikkarte geht der Speicher aus",
        "Speichermangel auf der GPU",
        "Plus de VRAM disponible, le script plante",
        "Dépassement de mémoire GPU",
        "le modèle ne rentre pas dans la VRAM",
        "Falta memoria en la GPU",
        "Me quedo sin VRAM al cargar el modelo",
        "Acabou a memória da GPU",
        "o modelo não cabe na VRAM",
        "La memoria della GPU non basta",
        "GPU senza memoria durante il training",
        "brakuje pamięci GPU",
        "GPU bellek yetmiyor",
        "thiếu bộ nhớ GPU",
        "نفدت الذاكرة على GPU",
        "Bei Batchgröße 4 läuft der Grafikspeicher voll und das Training bricht ab",
        "Mi va in OOM appena carico il modello",
        "Karta graficzna nie ma wystarczająco pamięci",
        "mô hình bị OOM khi chạy trên 3060",
        "С размером батча 4 не хватает видеопамяти",
        "Videokaartgeheugen is vol en het programma crasht",
        "Grafikkortets minne tar slut",
        "GPU'en løber tør for hukommelse",
        "Skjermkortet gikk tom for minne på GPU",
        "GPU:n muisti loppui kesken",
        "Elfogy a GPU memória",
        "Memorie GPU insuficientă",
        "Η μνήμη της κάρτας γραφικών δεν επαρκεί",
        "หน่วยความจำ GPU ไม่พอ",
        "הזיכרון של כרטיס המסך נגמר",
        "حافظه GPU کافی نیست",
        "GPU मेमोरी कम है",
        "el modelo agota la memoria de la GPU en lotes grandes",
        "estoura a VRAM numa GPU de 4GB",
        "4K render almaya çalışırken VRAM yetmedi",
        "GPU 4GB bị tràn VRAM khi nạp",
    };
    static const char *const not_out[] = {
        "训练大概占用多少显存",
        "显存会一直占着不释放吗",
        "Сколько видеопамяти нужно?",
        "Combien de VRAM faut-il ?",
        "¿Cuánta VRAM necesito?",
        "GPU 메모리 얼마나 필요한가요?",
        "Si la GPU se queda sin memoria en step5: `--tile 256`",
        "nada deu OOM, mas a placa ficou cheia",
        "VRAM不足ではなく、モデルの上限",
        "لتجنب نفاد ذاكرة كرت الشاشة (OOM)",
        "Hur mycket minne har grafikkortet?",
        "Wenn der Grafikspeicher voll ist, stürzt das Programm ab",
    };
    assert_each(out, sizeof out / sizeof *out, true);
    assert_each(not_out, sizeof not_out / sizeof *not_out, false);
}

static void a_title_or_a_form_names_it_in_a_word(void **state)
{
    (void)state;
    static const char *const out[] = {
        "Training OOM",
        "OOM 4090",
        "OOM in validation",
        "### Expected behavior\nIt runs\n\n### Actual behavior\nOOM\n\n### Version\n1.2",
    };
    static const char *const not_out[] = {
        "Handling OOM",
        "About OOM",
        "### What it means\nIt runs\n\n### Glossary\nOOM\n",
    };
    assert_each(out, sizeof out / sizeof *out, true);
    assert_each(not_out, sizeof not_out / sizeof *not_out, false);
}

/* "The job ran out of memory": it happened, whoever tells it, and in whatever language. */
static void a_trial_is_told_whatever_was_said_before_it(void **state)
{
    (void)state;
    static const char *const told[] = {
        "batch 16 OOMs on my card",
        "Started with 16, got OOM errors",
        "with batch size 4 out of memory",
        "Without it, even batch size 2 gives OOM.",
        "I can't run this, it OOMs",
        "I do not know why but it OOMs",
        "The trainer does not fit, I got OOM on a T4",
        "It crashed after using all available GPU RAM",
        "推論中に約14GB使いOOMで落ちた",
        "即使改小了也OOM",
        "训练到一半显存耗尽",
        "while the training the GPU memory get filled up after 3-4 epoch",
        "I couldn't scale to more samples (my gpu ran out of memory).",
        "I used the test set alone, because the dataset is too big for my GPU.",
        "the gpu memory utilization keeps increasing and finally overflows",
        "下载`am`，用`0.1.x`跑了下，显存爆了",
    };
    static const char *const untold[] = {
        "2 OOMs on node 3",
        "if batch size 4 out of memory",
        "rounds 4 out of memory",
        "Without it, even a batch gives OOM.",
        "If it is large, even if batch 2 gives OOM.",
        "If you do not use it, it OOMs",
        "it will not OOM, it fits",
        "The gallery no longer runs out of GPU memory while scrolling.",
        "It no longer hits out of memory",
        "The desktop crashed after using all available RAM",
    };
    assert_each(told, sizeof told / sizeof *told, true);
    assert_each(untold, sizeof untold / sizeof *untold, false);
}

static void what_ran_out_of_memory_is_told(void **state)
{
    (void)state;
    static const char *const out[] = {
        "It ran out of memory.",
        "You ran out of memory.",
        "The card ran out of memory.",
        "Training ran out of memory and crashed.",
        "The script ran out of memory at epoch 3.",
        "Validation runs out of memory while training is fine",
        "突然报错out of memory",
        "进行验证时，模型突然出现out of memory，之前验证都是正常的",
        "GLM-5.1多节点部署权重加载完会报错kv cache不足，还有什么解决办法",
        "batch-size=1, 显存都溢出，这是咋回事呢？",
        "GGML_ASSERT: D:\\a\\ggml-backend.c:460: data != NULL && \"failed to allocate buffer\"",
        "GGML_ASSERT: ggml-backend.c:460: failed to allocate buffer",
        "The model takes 25 GB, my card has 24 GB",
        "it tries to allocate 40 GB on my 24 GB card",
    };
    static const char *const not_out[] = {
        "Error: out of memory",
        "Fixed a bug where the server ran out of memory on long prompts.",
        "If the model ran out of memory, reduce the batch size.",
        "This article explains why your model ran out of memory and how to fix it.",
        "We made sure that it never ran out of memory.",
        "Handle the case where the allocator ran out of memory.",
        "# the allocator ran out of memory, so retry after freeing",
        "The JVM ran out of memory: Java heap space",
        "assertion 'allocs == 0' failed",
        "The model takes 20 GB, my card has 24 GB",
        "This PR lowers peak memory so that 8 GB cards do not OOM.",
        "My 24 GB card doesn't OOM any more.",
        "The allocator returns NULL when it runs out of memory.",
    };
    assert_each(out, sizeof out / sizeof *out, true);
    assert_each(not_out, sizeof not_out / sizeof *not_out, false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(how_it_ended_is_told),
        cmocka_unit_test(a_complaint_is_told_whatever_was_asked_before),
        cmocka_unit_test(what_happens_to_many_happened_to_nobody),
        cmocka_unit_test(chinese_says_it_without_blanks),
        cmocka_unit_test(persons_put_it_in_short),
        cmocka_unit_test(a_memory_error_of_a_device_is_one),
        cmocka_unit_test(a_person_tells_it_with_any_verb),
        cmocka_unit_test(what_is_got_or_said_or_kills_a_job_is_told),
        cmocka_unit_test(other_languages_have_many_words_for_it),
        cmocka_unit_test(a_title_or_a_form_names_it_in_a_word),
        cmocka_unit_test(a_trial_is_told_whatever_was_said_before_it),
        cmocka_unit_test(what_ran_out_of_memory_is_told),
        cmocka_unit_test(what_a_page_or_an_interface_says_is_no_message),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
