#include "messages/message_language.h"

#include <string.h>

#include "base/memory.h"

/* Phrases are small letters. One that ends in * is the beginning of a word: its endings belong to
 * it. One that begins with a digit sign # is a unit behind a number. Words of scripts without
 * blanks stand anywhere, others where a word begins. */
static const struct {
    const char *phrase;
    const char *english;
} phrases[] = {
    /* Chinese, both scripts */
    {"内存不足", "OutOfMemory"},
    {"显存不足", "OutOfVRAM"},
    {"顯存不足", "OutOfVRAM"},
    {"記憶體不足", "OutOfMemory"},
    {"爆显存", "OutOfVRAM"},
    {"爆顯存", "OutOfVRAM"},
    {"显存爆", "OutOfVRAM"},
    {"显存炸", "OutOfVRAM"},
    {"炸显存", "OutOfVRAM"},
    {"爆内存", "OutOfRAM"},
    {"显存溢出", "OutOfVRAM"},
    {"溢出显存", "OutOfVRAM"},
    {"显存都溢出", "OutOfVRAM"},
    {"显存会溢出", "often lack"},
    {"显存就会溢出", "often lack"},
    {"显存直接爆", "OutOfVRAM"},
    {"内存溢出", "OutOfMemory"},
    {"会爆显存", "often lack"},
    {"通常", "often"},
    {"报oom", "GPU OOM"},
    {"报 oom", "GPU OOM"},
    {"报错oom", "GPU OOM"},
    {"出现oom", "GPU OOM"},
    {"显示oom", "GPU OOM"},
    {"显示 oom", "GPU OOM"},
    {"提示oom", "GPU OOM"},
    {"提示 oom", "GPU OOM"},
    {"出现 oom", "GPU OOM"},
    {"遇到oom", "GPU OOM"},
    {"爆oom", "GPU OOM"},
    {"就oom", "GPU OOM"},
    {"直接oom", "GPU OOM"},
    {"oom了", "GPU OOM"},
    {"也oom", "GPU OOM"},
    {"又oom", "GPU OOM"},
    {"还是oom", "GPU OOM"},
    {"仍然oom", "GPU OOM"},
    {"依然oom", "GPU OOM"},
    {"但是", "but"},
    {"但", "but"},
    {"会不会", "maybe"},
    {"够不够", "maybe"},
    {"够用吗", "maybe"},
    {"够吗", "maybe"},
    {"是否", "if"},
    {"不会", "never"},
    {"会导致", "often"},
    {"会造成", "often"},
    {"可能导致", "maybe"},
    {"可能", "maybe"},
    {"可以通过", "usually by"},
    {"还是会", "still"},
    {"还会", "still"},
    {"都会", "always"},
    {"现存不足", "OutOfVRAM"},
    {"爆了显存", "OutOfVRAM"},
    {"显存满", "OutOfVRAM"},
    {"显存已满", "OutOfVRAM"},
    {"显存占满", "OutOfVRAM"},
    {"显存被占满", "OutOfVRAM"},
    {"显存打满", "OutOfVRAM"},
    {"显存跑满", "OutOfVRAM"},
    {"显存吃满", "OutOfVRAM"},
    {"显存耗尽", "OutOfVRAM"},
    {"显存用完", "OutOfVRAM"},
    {"显存用尽", "OutOfVRAM"},
    {"显存超出", "OutOfVRAM"},
    {"超显存", "OutOfVRAM"},
    {"超出显存", "OutOfVRAM"},
    {"显存被撑爆", "OutOfVRAM"},
    {"撑爆显存", "OutOfVRAM"},
    {"放不下", "lack"},
    {"装不下", "lack"},
    {"跑不下", "lack"},
    {"没有跑下来", "lack"},
    {"单卡", "gpu"},
    {"内存不足时", "lack if"},
    {"显存不足时", "lack if"},
    {"显存不足问题", "lack help"},
    {"不足时", "lack if"},
    {"不够时", "lack if"},
    {"没有足够的", "not enough"},
    {"共享内存", "shm"},
    {"已分配", "allocated"},
    {"总容量", "total"},
    {"显存", "vram"},
    {"的显存", "vram"},
    {"顯存", "vram"},
    {"内存", "memory"},
    {"記憶體", "memory"},
    {"显卡", "gpu"},
    {"分配", "alloc"},
    {"申请", "asked"},
    {"需要", "need"},
    {"无法", "cannot"},
    {"無法", "cannot"},
    {"错误", "error:"},
    {"錯誤", "error:"},
    {"失败", "failed"},
    {"失敗", "failed"},
    {"不足", "lack"},
    {"不够", "lack"},
    {"不夠", "lack"},
    {"可用", "free"},
    {"空闲", "free"},
    {"剩余", "free"},
    {"已用", "used"},
    {"占用", "used"},
    {"字节", "bytes"},
    {"如果", "if"},
    {"若", "if"},
    {"避免", "avoid"},
    {"防止", "avoid"},
    {"就会", "often"},
    {"也会", "often"},
    {"将会", "often"},
    {"解决", "help"},
    {"解决方案", "solution"},
    {"解决方法", "solution"},
    {"解决办法", "solution"},
    {"什么解决方案", "help"},
    {"什么解决方法", "help"},
    {"什么解决办法", "help"},
    {"什么办法", "help"},
    {"自动切换", "retrying"},
    {"自动降低", "retrying"},
    {"重试", "retry"},
    {"回退到", "fallback"},
    {"跳过", "skip"},
    {"设备上没有空间", "no space left on device"},
    {"页面文件太小", "swap too small"},

    /* Japanese */
    {"ビデオメモリ", "vram"},
    {"解決策", "solution"},
    {"解決方法", "solution"},
    {"再試行", "retrying"},
    {"スキップ", "skipping"},
    {"切り替え", "retrying"},
    {"調整します", "retrying"},
    {"共有メモリ", "shm"},
    {"メモリ不足", "OutOfMemory"},
    {"不足ではなく", "never"},
    {"不足ではない", "never"},
    {"メモリ不足ではなく", "never"},
    {"メモリ不足時", "lack if"},
    {"メモリ不足の時", "lack if"},
    {"メモリ不足の場合", "lack if"},
    {"メモリ不足の際", "lack if"},
    {"メモリ不足の仕組み", "lack help"},
    {"メモリ不足の原因", "lack help"},
    {"メモリ不足の対", "lack help"},
    {"oomで落ち", "GPU OOM"},
    {"oom で落ち", "GPU OOM"},
    {"oomで止ま", "GPU OOM"},
    {"oomで死", "GPU OOM"},
    {"oomにな", "GPU OOM"},
    {"oom にな", "GPU OOM"},
    {"oomが出", "GPU OOM"},
    {"oomエラー", "GPU OOM"},
    {"oomしま", "GPU OOM"},
    {"oomした", "GPU OOM"},
    {"メモリー", "memory"},
    {"メモリ", "memory"},
    {"エラー", "error:"},
    {"割り当て", "alloc"},
    {"確保", "alloc"},
    {"できません", "cannot"},
    {"できませんでした", "cannot"},
    {"足りません", "lack"},
    {"足りない", "lack"},
    {"足りなく", "lack"},
    {"足りなか", "lack"},
    {"足りず", "lack"},
    {"枯渇", "lack"},
    {"あふれ", "lack"},
    {"溢れ", "lack"},
    {"グラフィックメモリ", "vram"},
    {"グラフィックボード", "gpu"},
    {"グラボ", "gpu"},
    {"要求", "asked"},
    {"必要", "need"},
    {"空き", "free"},
    {"利用可能", "free"},
    {"使用中", "used"},
    {"合計", "total"},
    {"サイズ", "size"},
    {"バイト", "bytes"},
    {"場合", "if"},
    {"かもしれ", "maybe"},
    {"ページング ファイルが小さすぎる", "swap too small"},

    /* Korean */
    {"비디오 메모리", "vram"},
    {"해결 방법", "solution"},
    {"해결책", "solution"},
    {"재시도", "retrying"},
    {"건너뜁니다", "skipping"},
    {"전환합니다", "retrying"},
    {"조정합니다", "retrying"},
    {"그래픽 메모리", "vram"},
    {"공유 메모리", "shm"},
    {"메모리", "memory"},
    {"보통", "often"},
    {"부족하면", "lack if"},
    {"부족", "lack"},
    {"모자라", "lack"},
    {"모자랍니다", "lack"},
    {"터집니다", "lack"},
    {"터져", "lack"},
    {"터짐", "lack"},
    {"터졌", "lack"},
    {"그래픽카드", "gpu"},
    {"오류", "error:"},
    {"발생합니다", "now occurs"},
    {"발생했", "now occurs"},
    {"실패", "failed"},
    {"할당", "alloc"},
    {"요청", "asked"},
    {"필요", "need"},
    {"사용 가능", "free"},
    {"여유", "free"},
    {"사용 중", "used"},
    {"전체", "total"},
    {"바이트", "bytes"},
    {"크기", "size"},

    /* Russian */
    {"недостаточн*", "not enough"},
    {"решение", "solution"},
    {"повторная попытка", "retrying"},
    {"переключ*", "retrying"},
    {"не хватает", "lack"},
    {"не хватило", "lack"},
    {"нехватк*", "lack"},
    {"закончилась", "lack"},
    {"кончилась", "lack"},
    {"заканчивается", "lack"},
    {"кончается", "lack"},
    {"не влеза*", "lack"},
    {"не помеща*", "lack"},
    {"мало", "lack"},
    {"видеопамят*", "vram"},
    {"оперативной памяти", "ram"},
    {"памят*", "memory"},
    {"видеокарт*", "gpu"},
    {"размер батча", "batch size"},
    {"размером батча", "batch size"},
    {"ошибк*", "error"},
    {"не удалось", "unable"},
    {"невозможно", "unable"},
    {"выделить", "alloc"},
    {"выделени*", "alloc"},
    {"требуется", "need"},
    {"запрошено", "requested"},
    {"нужно", "need"},
    {"доступно", "free"},
    {"свободно", "free"},
    {"занято", "used"},
    {"использ*", "used"},
    {"всего", "total"},
    {"обычно", "usually"},
    {"возможно", "maybe"},
    {"означает", "means"},
    {"если", "if"},
    {"когда", "when"},
    {"файл подкачки слишком мал", "swap too small"},
    {"на устройстве не осталось свободного места", "no space left on device"},
    {"#байт*", "bytes"},
    {"#гиг*", "gb"},
    {"#мегабайт*", "mb"},
    {"#кб", "kb"},
    {"#мб", "mb"},
    {"#гб", "gb"},
    {"#тб", "tb"},
    {"#киб", "kib"},
    {"#миб", "mib"},
    {"#гиб", "gib"},

    /* German */
    {"nicht genügend", "not enough"},
    {"ist voll", "is full"},
    {"erschöpft", "lack"},
    {"reicht nicht", "lack"},
    {"lösung*", "fixes"},
    {"stattdessen", "instead"},
    {"verwende", "using"},
    {"nicht genug", "not enough"},
    {"nicht ausreichend*", "not enough"},
    {"unzureichend*", "lack"},
    {"zu wenig", "lack"},
    {"speichermangel", "lack memory"},
    {"geht der speicher aus", "out of memory"},
    {"geht der vram aus", "out of vram"},
    {"speicher ausgegangen", "out of memory"},
    {"kein speicher mehr", "out of memory"},
    {"kein vram mehr", "lack vram"},
    {"läuft der speicher voll", "out of memory"},
    {"läuft der grafikspeicher voll", "out of vram"},
    {"läuft der vram voll", "out of vram"},
    {"batchgröße", "batch"},
    {"stürzt ab", "crashes"},
    {"bricht ab", "aborts"},
    {"speicher voll", "memory full"},
    {"vram voll", "vram full"},
    {"passt nicht", "lack"},
    {"nicht dasselbe wie", "without"},
    {"hinweist", "means"},
    {"beschreibt", "means"},
    {"bedeutet", "means"},
    {"grafikspeicher*", "vram"},
    {"grafikkartenspeicher*", "vram"},
    {"videospeicher*", "vram"},
    {"arbeitsspeicher*", "ram"},
    {"hauptspeicher*", "ram"},
    {"speicherressourcen", "memory"},
    {"speicher", "memory"},
    {"speichers", "memory"},
    {"grafikkarte*", "gpu"},
    {"fehler", "error"},
    {"fehlgeschlagen", "failed"},
    {"fehlgeschlagene*", "failed"},
    {"konnte nicht", "could not"},
    {"konnten nicht", "could not"},
    {"kann nicht", "cannot"},
    {"nicht möglich", "unable"},
    {"reserviert werden", "alloc"},
    {"zugewiesen werden", "alloc"},
    {"angefordert*", "requested"},
    {"benötigt*", "needed"},
    {"frei", "free"},
    {"verfügbar", "free"},
    {"belegt", "used"},
    {"insgesamt", "total"},
    {"in der regel", "usually"},
    {"vielleicht", "maybe"},
    {"möglicherweise", "maybe"},
    {"wenn", "when"},
    {"auslagerungsdatei ist zu klein", "swap too small"},
    {"auf dem gerät ist kein speicherplatz mehr verfügbar", "no space left on device"},
    {"kein speicherplatz*", "disk full"},

    /* French */
    {"insuffisant*", "lack"},
    {"est saturée", "is full"},
    {"saturée", "full"},
    {"est pleine", "is full"},
    {"à court de", "out of"},
    {"n'a plus de", "lack"},
    {"n'a pas assez", "lack"},
    {"manque de", "lack"},
    {"épuisée", "lack"},
    {"pas assez", "lack"},
    {"plus assez", "lack"},
    {"dépassement de mémoire", "out of memory"},
    {"saturation de la vram", "lack vram"},
    {"saturation de la mémoire", "lack memory"},
    {"mémoire pleine", "memory full"},
    {"plus de vram", "lack vram"},
    {"ne rentre pas", "lack"},
    {"mémoire vidéo", "vram"},
    {"mémoire graphique", "vram"},
    {"mémoire vive", "ram"},
    {"mémoire partagée", "shm"},
    {"mémoire", "memory"},
    {"memoire", "memory"},
    {"carte graphique", "gpu"},
    {"erreur", "error"},
    {"échec", "failed"},
    {"échoué*", "failed"},
    {"impossible", "unable"},
    {"allouer", "alloc"},
    {"réserver", "alloc"},
    {"requis*", "need"},
    {"nécessaire*", "needed"},
    {"demandé*", "asked"},
    {"estimé*", "need"},
    {"libre", "free"},
    {"libres", "free"},
    {"disponible*", "free"},
    {"utilisé*", "used"},
    {"utilisation du", "using"},
    {"généralement", "usually"},
    {"peut-être", "maybe"},
    {"signifie", "means"},
    {"lorsque", "when"},
    {"aucun espace disponible sur le périphérique", "no space left on device"},
    {"fichier de pagination est insuffisant", "swap too small"},
    {"#octets", "bytes"},
    {"#ko", "kb"},
    {"#mo", "mb"},
    {"#go", "gb"},
    {"#to", "tb"},
    {"#kio", "kib"},
    {"#mio", "mib"},
    {"#gio", "gib"},

    /* Spanish, Portuguese, Italian */
    {"tamaño de lote", "batch size"},
    {"agota la memoria", "out of memory"},
    {"agota la vram", "out of vram"},
    {"estoura a vram", "out of vram"},
    {"estourou a vram", "out of vram"},
    {"estourando a vram", "out of vram"},
    {"estoura a memória", "out of memory"},
    {"estourou a memória", "out of memory"},
    {"si la", "if"},
    {"si el", "if"},
    {"si le", "if"},
    {"si votre", "if"},
    {"si vous", "if"},
    {"si tienes", "if"},
    {"se a", "if"},
    {"se o", "if"},
    {"se la", "if"},
    {"se il", "if"},
    {"nada deu", "never"},
    {"não deu", "never"},
    {"tamanho do lote", "batch size"},
    {"insuficiente*", "lack"},
    {"agotad*", "lack"},
    {"esgotad*", "lack"},
    {"esaurit*", "lack"},
    {"sin memoria", "lack memory"},
    {"sem memória", "lack memory"},
    {"sin vram", "no vram"},
    {"sem vram", "no vram"},
    {"senza memoria", "lack memory"},
    {"falta memoria", "lack memory"},
    {"falta de memoria", "lack memory"},
    {"falta memória", "lack memory"},
    {"falta de memória", "lack memory"},
    {"falta vram", "lack vram"},
    {"falta de vram", "lack vram"},
    {"memoria llena", "memory full"},
    {"memória cheia", "memory full"},
    {"memoria piena", "memory full"},
    {"estouro de memória", "out of memory"},
    {"acabou a memória", "lack memory"},
    {"se acaba la memoria", "out of memory"},
    {"se acabó la memoria", "out of memory"},
    {"se queda sin", "lack"},
    {"quedo sin", "lack"},
    {"llena", "full"},
    {"cheia", "full"},
    {"se me acaba", "lack"},
    {"se acaba", "lack"},
    {"se acabó", "lack"},
    {"no cabe", "lack"},
    {"não cabe", "lack"},
    {"non basta", "lack"},
    {"non c'è abbastanza", "not enough"},
    {"memoria finita", "lack memory"},
    {"está llena", "is full"},
    {"está cheia", "is full"},
    {"è piena", "full"},
    {"allocazione", "alloc"},
    {"asignación", "alloc"},
    {"alocação", "alloc"},
    {"solución", "solution"},
    {"solução", "solution"},
    {"soluções", "solution"},
    {"insufficiente", "lack"},
    {"suficiente*", "enough"},
    {"sufficiente", "enough"},
    {"no hay", "no"},
    {"não há", "no"},
    {"memoria de video", "vram"},
    {"memoria de vídeo", "vram"},
    {"memória de vídeo", "vram"},
    {"memoria gráfica", "vram"},
    {"memoria video", "vram"},
    {"memoria ram", "ram"},
    {"memória ram", "ram"},
    {"sin memoria física", "lack ram"},
    {"sem memória física", "lack ram"},
    {"memoria compartida", "shm"},
    {"memória compartilhada", "shm"},
    {"memoria", "memory"},
    {"memória", "memory"},
    {"placa de vídeo", "gpu"},
    {"tarjeta gráfica", "gpu"},
    {"scheda grafica", "gpu"},
    {"scheda video", "gpu"},
    {"va in oom", "GPU OOM"},
    {"vanno in oom", "GPU OOM"},
    {"erro", "err"},
    {"errore", "error"},
    {"falló", "failed"},
    {"falha", "fail"},
    {"no se pudo", "unable"},
    {"no se puede", "unable"},
    {"não foi possível", "unable"},
    {"impossibile", "unable"},
    {"asignar", "alloc"},
    {"reservar", "alloc"},
    {"alocar", "alloc"},
    {"allocare", "alloc"},
    {"se necesitan", "need"},
    {"necesario*", "need"},
    {"necessário*", "need"},
    {"requiere*", "need"},
    {"requer", "need"},
    {"richiesti", "need"},
    {"richiesto", "need"},
    {"solicitad*", "asked"},
    {"quedan", "free"},
    {"disponível", "free"},
    {"disponíveis", "free"},
    {"disponibil*", "free"},
    {"usando", "using"},
    {"trying again", "retrying"},
    {"en uso", "used"},
    {"em uso", "used"},
    {"normalmente", "usually"},
    {"significa", "means"},
    {"geralmente", "usually"},
    {"cuando", "when"},
    {"quando", "when"},
    {"no se puede asignar memoria", "cannot allocate memory"},
    {"não foi possível alocar memória", "cannot allocate memory"},
    {"no queda espacio en el dispositivo", "no space left on device"},
    {"não há espaço disponível no dispositivo", "no space left on device"},
    {"archivo de paginación es demasiado pequeño", "swap too small"},

    /* Polish */
    {"za mało", "lack"},
    {"wyczerpan*", "lack"},
    {"brak pamięci", "out of memory"},
    {"brakuje", "lack"},
    {"zabrakło", "lack"},
    {"brak vram", "lack vram"},
    {"niewystarczając*", "lack"},
    {"kończy się", "lack"},
    {"skończyła się", "lack"},
    {"pamięci wideo", "vram"},
    {"pamięci karty graficznej", "vram"},
    {"pamięci", "memory"},
    {"nie ma wystarczająco", "lack"},
    {"karta graficzna", "gpu"},
    {"karty graficznej", "gpu"},
    {"karcie graficznej", "gpu"},
    {"błąd", "err"},
    {"nie można", "unable"},
    {"przydzielić", "alloc"},

    /* Turkish, Vietnamese, Ukrainian, Dutch, Czech, Indonesian */
    {"bellek", "memory"},
    {"belleğ*", "memory"},
    {"yetersiz*", "lack"},
    {"yetmiyor", "lack"},
    {"yetmedi", "lack"},
    {"yetmez", "lack"},
    {"xem có", "if"},
    {"bị tràn vram", "out of vram"},
    {"doldu", "full"},
    {"thiếu", "lack"},
    {"tràn", "lack"},
    {"hata", "err:"},
    {"bộ nhớ", "memory"},
    {"không đủ", "lack"},
    {"hết", "lack"},
    {"lỗi", "err"},
    {"недостатньо", "not enough"},
    {"не вистачає", "lack"},
    {"пам'ят*", "memory"},
    {"відеопам'ят*", "vram"},
    {"помилк*", "error"},
    {"onvoldoende", "lack"},
    {"te weinig", "lack"},
    {"geheugen", "memory"},
    {"videogeheugen", "vram"},
    {"fout", "err"},
    {"nedostatek", "lack"},
    {"došla", "lack"},
    {"geen geheugen meer", "out of memory"},
    {"paměť*", "memory"},
    {"paměti", "memory"},
    {"chyba", "err"},
    {"memori", "memory"},
    {"tidak cukup", "not enough"},
    {"kehabisan", "lack"},
    {"نفاد الذاكرة", "OutOfMemory"},
    {"نفدت الذاكرة", "OutOfMemory"},
    {"غير كافية", "lack"},
    {"ذاكرة", "memory"},
    {"gagal", "fail"},
    {"bị oom", "GPU OOM"},
    {"card đồ họa", "gpu"},
    {"card màn hình", "gpu"},
    {"відеокарт*", "gpu"},
    {"закінчилася", "lack"},
    {"videokaart", "gpu"},
    {"videokaartgeheugen", "vram"},
    {"geheugen is vol", "memory full"},
    {"videogeheugen is vol", "vram is full"},
    {"videokaartgeheugen is vol", "vram is full"},
    {"grafická karta", "gpu"},
    {"grafické kart*", "gpu"},
    {"nestačí", "lack"},

    /* Swedish, Danish, Norwegian, Finnish, Hungarian, Romanian, Greek */
    {"grafikkort*", "gpu"},
    {"grafikminne*", "vram"},
    {"videominne*", "vram"},
    {"minnet", "memory"},
    {"minne tar slut", "lack memory"},
    {"slut på minne", "out of memory"},
    {"tar slut", "lack"},
    {"tog slut", "lack"},
    {"för lite", "lack"},
    {"räcker inte", "lack"},
    {"hukommelse*", "memory"},
    {"løber tør for", "out of"},
    {"løb tør for", "out of"},
    {"tom for minne", "out of memory"},
    {"tom for vram", "out of vram"},
    {"muisti loppu*", "lack memory"},
    {"muisti ei riitä", "lack memory"},
    {"näytönohjaimen", "gpu"},
    {"elfogy*", "lack"},
    {"kevés", "lack"},
    {"videókártya", "gpu"},
    {"memorie", "memory"},
    {"insuficientă", "lack"},
    {"placa video", "gpu"},
    {"μνήμη*", "memory"},
    {"μνήμης", "memory"},
    {"δεν επαρκεί", "lack"},
    {"δεν φτάνει", "lack"},
    {"ανεπαρκής", "lack"},
    {"κάρτα γραφικών", "gpu"},
    {"κάρτας γραφικών", "gpu"},

    /* Thai, Hebrew, Persian, Arabic, Hindi */
    {"หน่วยความจำ", "memory"},
    {"แรมการ์ดจอ", "vram"},
    {"การ์ดจอ", "gpu"},
    {"ไม่พอ", "lack"},
    {"ไม่เพียงพอ", "lack"},
    {"หมด", "lack"},
    {"זיכרון", "memory"},
    {"זכרון", "memory"},
    {"כרטיס המסך", "gpu"},
    {"כרטיס מסך", "gpu"},
    {"נגמר", "lack"},
    {"אין מספיק", "lack"},
    {"حافظه", "memory"},
    {"کافی نیست", "lack"},
    {"کارت گرافیک", "gpu"},
    {"لا تكفي", "lack"},
    {"لتجنب", "avoid"},
    {"تجنب", "avoid"},
    {"غير كاف", "lack"},
    {"كرت الشاشة", "gpu"},
    {"मेमोरी", "memory"},
    {"पर्याप्त नहीं", "lack"},
    {"कम है", "lack"},
    {"खत्म", "lack"},
};

enum { COUNT = sizeof phrases / sizeof *phrases };

static bool is_letter(unsigned char byte)
{
    return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z');
}

/* Of Latin, Greek and Cyrillic: two bytes that begin with these. */
static bool is_lead(unsigned char byte)
{
    return byte >= 0xc3 && byte <= 0xd4;
}

static bool is_alphabet(unsigned char byte)
{
    return is_letter(byte) || is_lead(byte);
}

/* Two bytes at most, made small: "Ä", "П". The lead byte of "р" to "я" is another than that of
 * their capitals. Returns how many bytes were read. */
static size_t fold(const unsigned char *text, size_t length, unsigned char small[2])
{
    small[0] = text[0] >= 'A' && text[0] <= 'Z' ? (unsigned char)(text[0] + 0x20) : text[0];
    small[1] = 0;
    if (!is_lead(text[0]) || length < 2)
        return 1;
    small[1] = text[1];
    if (text[0] == 0xc3 && text[1] >= 0x80 && text[1] <= 0x9e) {
        small[1] = (unsigned char)(text[1] + 0x20);
    } else if (text[0] == 0xd0 && text[1] >= 0x90 && text[1] <= 0x9f) {
        small[1] = (unsigned char)(text[1] + 0x20);
    } else if (text[0] == 0xd0 && text[1] >= 0xa0 && text[1] <= 0xaf) {
        small[0] = 0xd1;
        small[1] = (unsigned char)(text[1] - 0x20);
    }
    return 2;
}

static size_t letter_bytes(const unsigned char *text, size_t length)
{
    return length > 0 && is_letter(*text) ? 1 : length > 1 && is_lead(*text) ? 2 : 0;
}

static const char *plain_start(const char *phrase)
{
    return phrase + (*phrase == '#');
}

/* Without a word's end; a blank of the phrase stands for any. */
static size_t match(const char *phrase, const unsigned char *text, size_t length)
{
    size_t at = 0;
    while (*phrase != '\0' && *phrase != '*') {
        unsigned char small[2];
        if (at >= length)
            return 0;
        if (*phrase == ' ') {
            size_t blanks = 0;
            while (at + blanks < length && strchr(" \t\n\r", text[at + blanks]) != NULL)
                blanks++;
            if (blanks == 0 || text[at] == '\0')
                return 0;
            at += blanks;
            phrase++;
            continue;
        }
        size_t read = fold(text + at, length - at, small);
        if ((unsigned char)*phrase != small[0] ||
            (read == 2 && (unsigned char)phrase[1] != small[1]))
            return 0;
        at += read;
        phrase += read;
    }
    for (size_t bytes = 1; *phrase == '*' && bytes > 0; at += bytes)
        bytes = letter_bytes(text + at, length - at);
    return at;
}

/* "512 Mo": a number stands before it. */
static bool has_number_before(const unsigned char *text, size_t at)
{
    while (at > 0 && text[at - 1] == ' ')
        at--;
    return at > 0 && text[at - 1] >= '0' && text[at - 1] <= '9';
}

static bool starts_word(const unsigned char *text, size_t at)
{
    return at == 0 || !(is_letter(text[at - 1]) || text[at - 1] == '_' ||
                        (text[at - 1] >= '0' && text[at - 1] <= '9') ||
                        (at > 1 && text[at - 1] >= 0x80 && is_lead(text[at - 2])));
}

static bool is_in_place(size_t index, const unsigned char *text, size_t length, size_t at,
                        size_t end, bool is_foreign)
{
    const char *phrase = phrases[index].phrase;
    if (*phrase == '#' && (!is_foreign || !has_number_before(text, at)))
        return false;
    if (!is_alphabet((unsigned char)*plain_start(phrase)))
        return true;
    bool is_unit = *phrase == '#';
    return (is_unit || starts_word(text, at)) &&
           (end >= length || (letter_bytes(text + end, length - end) == 0 && text[end] != '_'));
}

/* Bytes that go into the text made plain, which has no blanks. */
static size_t written(const char *phrase)
{
    size_t bytes = 0;
    for (; *phrase != '\0'; phrase++)
        bytes += *phrase != ' ' && *phrase != '*';
    return bytes;
}

void frag_language_init(frag_language *language)
{
    _Static_assert((int)COUNT <= (int)FRAG_LANGUAGE_PHRASES_MAX,
                   "the index has room for all phrases");
    *language = (frag_language){0};
    for (size_t i = COUNT; i > 0; i--) {
        uint16_t *list = &language->first[(unsigned char)*plain_start(phrases[i - 1].phrase)];
        FRAG_ASSERT(written(phrases[i - 1].english) <= written(plain_start(phrases[i - 1].phrase)));
        language->next[i - 1] = *list;
        *list = (uint16_t)i;
    }
}

size_t frag_language_phrase(const frag_language *language, const unsigned char *text, size_t length,
                            size_t at, bool is_foreign, const char **english)
{
    unsigned char small[2];
    size_t longest = 0;
    if (is_letter(text[at]) && at > 0 && is_letter(text[at - 1]))
        return 0;
    fold(text + at, length - at, small);
    for (size_t i = language->first[small[0]]; i != 0; i = language->next[i - 1]) {
        size_t taken = match(plain_start(phrases[i - 1].phrase), text + at, length - at);
        if (taken > longest && is_in_place(i - 1, text, length, at, at + taken, is_foreign)) {
            longest = taken;
            *english = phrases[i - 1].english;
        }
    }
    return longest;
}
